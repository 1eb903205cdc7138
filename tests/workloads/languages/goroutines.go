// Goroutines that wait for known reasons all the time, and one that waits half of its time.
package main

import (
	"fmt"
	"net"
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

// Waits for 75 ms of each 100 ms at one place, and for the rest at another.
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

func main() {
	listener, _ = net.Listen("tcp", "127.0.0.1:0")
	mutex.Lock()
	group.Add(1)
	start(5, inSelect)
	start(3, func() { inReceive(10) })
	start(2, inSend)
	start(4, inMutex)
	start(1, inGroup)
	start(1, inNetwork)
	start(6, inSleep)
	start(1, alternates)
	time.Sleep(100 * time.Millisecond)
	fmt.Println("ready")
	<-rounds
}
