//! What blocked threads wait on, and whether they had work: `waits/`, `clock/work.h`.

use crate::mutant::Expected::Caught;
use crate::mutant::Mutant;

const IDLE: &str = "timed::idleness::what_is_shown_as_idle_was";
const FROM_BIRTH: &str = "timed::idleness::a_commands_threads_are_known_from_their_birth";
const OBJECTS: &str = "timed::reasons::each_wait_has_its_reason";

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        rule: "a descriptor's file counts if the thread has it on its stack",
        file: "include/waits/saved_words.h",
        change: (
            "	if (!file || !holds(task, file, behind))",
            "	if (file)\n		return file;\n	if (!file || !holds(task, file, behind))",
        ),
        expected: Caught(&[
            "timed::objects::a_file_that_takes_the_place_of_another_is_not_what_was_waited_on",
        ]),
    },
    Mutant {
        rule: "of an epoll instance it is the file that was ready first",
        file: "include/waits/objects.h",
        change: ("argument == ARGUMENT_EPOLL && file", "false"),
        expected: Caught(&[OBJECTS]),
    },
    Mutant {
        rule: "a mutex says who holds it",
        file: "include/waits/futexes.h",
        change: ("lock + MUTEX_OWNER) ?", "lock) ?"),
        expected: Caught(&[OBJECTS]),
    },
    Mutant {
        rule: "a port that the kernel gave is the side that asks",
        file: "include/waits/sockets.h",
        change: (
            "		event->side = SIDE_ASKS;\n		event->local_port = 0;",
            "		event->side = SIDE_ANSWERS;\n		event->local_port = 0;",
        ),
        expected: Caught(&[IDLE]),
    },
    Mutant {
        rule: "who is woken by one who works for it had waited for an answer",
        file: "include/clock/work.h",
        change: (
            "	if ((found & ~CLIENT_FLAGS) != task)\n",
            "	if (task || (found & ~CLIENT_FLAGS) != task)\n",
        ),
        expected: Caught(&[FROM_BIRTH]),
    },
    Mutant {
        rule: "what a thread did when the window opened is nobody's",
        file: "include/clock/work.h",
        change: (
            "if (!waker || thread->off_since == thread->started)",
            "if (!waker)",
        ),
        expected: Caught(&["timed::idleness::who_asked_before_the_window_is_not_given_work"]),
    },
    Mutant {
        rule: "only what threads of certain origin do tells something",
        file: "include/clock/work.h",
        change: (
            "	return work->certainty >= CERTAIN;",
            "	return work->certainty < 100;",
        ),
        expected: Caught(&[IDLE]),
    },
    Mutant {
        rule: "who is born works for who bore it",
        file: "include/clock/work.h",
        change: (
            "	thread->work.clients[0] = bpf_get_current_task() | IS_CERTAIN;\n",
            "",
        ),
        expected: Caught(&["timed::idleness::who_is_born_answers_who_bore_it"]),
    },
    Mutant {
        rule: "of a wait for a lock it is noted who ended it",
        file: "src/offcputime.bpf.c",
        change: ("		waker = thread->waker;\n", ""),
        expected: Caught(&[
            "timed::locks::locks_are_there_with_who_held_them_and_where_they_were_released",
        ]),
    },
    Mutant {
        rule: "a thread that could run may wait for its cgroup's quota",
        file: "include/waits/quota.h",
        change: ("		return read_task(task, throttled);", "		return false;"),
        expected: Caught(&["timed::reasons::a_used_up_cpu_quota_is_told_from_waiting_for_a_cpu"]),
    },
];
