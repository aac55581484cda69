// Package testnet gives tests addresses to listen on. It is no part of the product: tests alone import it.
//
// Functions may be called by any number of goroutines, and by several test processes at once.
package testnet

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
)

// The ports lie below those that the kernel gives to outgoing connections and to listeners that ask for port 0 (from 32768
// on Linux, from 49152 elsewhere). Such a port can be taken by any connection while a test stops a server and starts it again.
const (
	firstPort = 10000
	ports     = 20000
	perTest   = 97 // distance between the first ports of test processes whose process ids follow each other
)

var given atomic.Int64

// Address returns a loopback address, host and port, on which no process listens and that Address does not give again to this
// process. It fails the test if it finds none.
func Address(t testing.TB) string {
	t.Helper()
	for range ports {
		port := firstPort + (int64(os.Getpid())*perTest+given.Add(1))%ports
		address := fmt.Sprintf("127.0.0.1:%d", port)
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
