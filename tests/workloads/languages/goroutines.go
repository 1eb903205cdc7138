// Goroutines that wait for known reasons all the time, and one that waits at two places in turn. The
// program ends after a line on stdin. An argument adds so many goroutines that receive. With a second
// one, the program ends after three seconds.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

var (
	never    = make(chan int)
	other    = make(chan int)
	full     = make(chan int)
	mutex    sync.Mutex
	group    sync.WaitGroup
	rounds   = make(chan int)
	listener net.Listener
)

//go:noinline
func inSelect() {
	select {
	case <-never:
	case <-other:
	}
}

//go:noinline
func inReceive(depth int) int {
	if depth > 0 {
		return inReceive(depth-1) + 1
	}
	return <-never
}

//go:noinline
func inSend() { full <- 1 }

//go:noinline
func inMutex() { mutex.Lock() }

//go:noinline
func inGroup() { group.Wait() }

//go:noinline
func inNetwork() { listener.Accept() }

//go:noinline
func inSleep() { time.Sleep(time.Hour) }

// Waits for 75 ms of each 100 ms in longer, and for the rest in shortly.
//
//go:noinline
func alternates() {
	for {
		shortly()
		longer()
	}
}

//go:noinline
func shortly() { time.Sleep(25 * time.Millisecond) }

//go:noinline
func longer() { time.Sleep(75 * time.Millisecond) }

func start(count int, wait func()) {
	for ; count > 0; count-- {
		go wait()
	}
}

// Starts finalizers, whose goroutine is the runtime's own.
func finalize() {
	runtime.SetFinalizer(new([16]int), func(*[16]int) {})
	runtime.GC()
}

func main() {
	listener, _ = net.Listen("tcp", "127.0.0.1:0")
	mutex.Lock()
	group.Add(1)
	finalize()
	start(5, inSelect)
	start(3, func() { inReceive(10) })
	start(2, inSend)
	start(4, inMutex)
	start(1, inGroup)
	start(1, inNetwork)
	start(6, inSleep)
	start(1, alternates)
	if len(os.Args) > 1 {
		more, _ := strconv.Atoi(os.Args[1])
		start(more, func() { inReceive(10) })
	}
	go func() {
		if len(os.Args) > 2 {
			time.Sleep(3 * time.Second)
		} else {
			os.Stdin.Read(make([]byte, 1))
		}
		os.Exit(0)
	}()
	time.Sleep(100 * time.Millisecond)
	fmt.Println("ready")
	<-rounds
}
