// Goroutines that compute, sleep, pass work on and read files.
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"
)

//go:noinline
func sortNumbers(count int) int {
	numbers := make([]int, count)
	for n := range numbers {
		numbers[n] = n * 7919 % 10007
	}
	sort.Slice(numbers, func(left, right int) bool { return numbers[left] < numbers[right] })
	return numbers[0]
}

//go:noinline
func descend(depth int) int {
	if depth == 0 {
		sum := sha256.Sum256(make([]byte, 4096))
		return sortNumbers(3000) + int(sum[0])
	}
	return descend(depth-1) + 1
}

func burn(work chan<- int) {
	for {
		result := descend(5)
		select {
		case work <- result:
		default:
		}
	}
}

func take(work <-chan int, lock *sync.Mutex) {
	sum := 0
	for result := range work {
		lock.Lock()
		sum += result
		time.Sleep(time.Millisecond)
		lock.Unlock()
	}
	fmt.Println(sum)
}

func read() {
	for {
		if _, err := os.ReadFile("/proc/self/status"); err != nil {
			panic(err)
		}
		time.Sleep(3 * time.Millisecond)
	}
}

func main() {
	work := make(chan int)
	var lock sync.Mutex
	go burn(work)
	go take(work, &lock)
	go take(work, &lock)
	go read()
	fmt.Println("ready")
	select {}
}
