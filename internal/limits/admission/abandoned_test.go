package admission_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/limits/admission"
)

// Ensure that a host which abandons many requests is refused for a while, and that others are not.
func TestAbandoned_Admits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a admission.Abandoned
		one, other := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 1}
		again := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 2}
		a.Add(one, 4096)
		if !a.Admits(again) {
			t.Error("a client that restarts is refused")
		}
		a.Add(one, 1)
		if a.Admits(again) {
			t.Error("too many were abandoned, and the next connection is taken")
		}
		if !a.Admits(other) {
			t.Error("another host is refused")
		}
		<-time.After(time.Second)
		if !a.Admits(again) {
			t.Error("a second later it is refused still")
		}
		for range 100 {
			a.Add(one, 10_000)
		}
		refused := 0
		for !a.Admits(again) {
			<-time.After(time.Second)
			refused++
		}
		if refused < 14 || refused > 17 {
			t.Errorf("it is refused for %d s, want 16", refused)
		}
		<-time.After(time.Minute)
		a.Admits(again)
		if hosts, counted := a.Counts(); hosts != 0 || counted != uint64(refused+1) {
			t.Errorf("%d hosts are remembered, %d refusals counted", hosts, counted)
		}
	})
}

// Ensure that no more hosts are remembered than there may be, and that those which were forgiven make room.
func TestAbandoned_Add_manyHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a admission.Abandoned
		host := func(i int) net.Addr { return &net.TCPAddr{IP: net.IPv4(10, byte(i>>16), byte(i>>8), byte(i)), Port: 1} }
		for i := range 5000 {
			a.Add(host(i), 5000)
		}
		if hosts, _ := a.Counts(); hosts != 4096 {
			t.Errorf("%d hosts are remembered", hosts)
		}
		if a.Admits(host(0)) || !a.Admits(host(4999)) {
			t.Error("the first was forgotten, or one more was remembered")
		}
		<-time.After(time.Minute)
		a.Add(host(5000), 5000)
		if hosts, _ := a.Counts(); hosts != 1 || a.Admits(host(5000)) {
			t.Errorf("a minute later %d hosts are remembered", hosts)
		}
	})
}
