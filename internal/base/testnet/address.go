// Package testnet gives tests addresses to listen on. It is no part of the product: tests alone import it.
//
// Functions may be called by any number of goroutines, and by several test processes at once.
package testnet

import (
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
)

// The ports lie below those that the kernel gives to outgoing connections and to listeners that ask for port 0 (from 32768
// on Linux, from 49152 elsewhere). Such a port can be taken by any connection while a test stops a server and starts it again.
//
// For the same reason no two test processes share a block of ports. A process owns a block as long as it listens on its first
// port, which it does until it ends.
const (
	firstPort = 10000
	ports     = 20000
	block     = 100
)

// taken is the block of this process from which ports are given.
var taken struct {
	sync.Mutex
	guards []net.Listener // on the first ports of all blocks of this process
	next   int            // zero: it has no block
}

// Address returns a loopback address, host and port, on which no process listens and that Address does not give again to this
// process, nor to another one until this process ends. It fails the test if it finds none.
func Address(t testing.TB) string {
	t.Helper()
	taken.Lock()
	defer taken.Unlock()
	for range ports {
		if taken.next%block == 0 && !takeBlock() {
			break
		}
		address := local(taken.next)
		taken.next++
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return address
	}
	t.Fatalf("no free port from %d to %d", firstPort, firstPort+ports-1)
	return ""
}

// takeBlock takes a block that no process has.
func takeBlock() bool {
	const blocks = ports / block
	for i := range blocks {
		first := firstPort + (os.Getpid()+i)%blocks*block
		if guard, err := net.Listen("tcp", local(first)); err == nil {
			taken.guards, taken.next = append(taken.guards, guard), first+1
			return true
		}
	}
	return false
}

func local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
