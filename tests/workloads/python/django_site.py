"""Django site with one page. For the page the site computes a little and waits a little.

usage: gunicorn --pythonpath FOLDER django_site:application
"""

import time

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path

settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="of no use")


def key_of(number):
    return number * 7919 % 1009


def page(request):
    # sorted runs in C, and calls key_of for each number.
    numbers = sorted(range(3000), key=key_of)
    time.sleep(0.002)
    return HttpResponse("".join("<li>%d</li>" % number for number in numbers))


urlpatterns = [path("", page)]
application = get_wsgi_application()
