// SPDX-License-Identifier: MIT
/* C++ names: a method of a template in a namespace, which computes and sleeps. */
#include "workload.h"

namespace orchard
{
template <typename T> struct Basket {
	NOINLINE void gather(T turns)
	{
		for (volatile T turn = 0; turn < turns; turn = turn + 1)
			;
		sleep_ns(5 * NS_PER_MS);
	}
};
} // namespace orchard

int main()
{
	orchard::Basket<unsigned int> basket;

	tell("ready");
	for (;;)
		basket.gather(3000000);
}
