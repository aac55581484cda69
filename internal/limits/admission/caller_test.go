package admission_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc/peer"

	"github.com/quorate/quorate/internal/limits/admission"
)

// Ensure that the addresses of one IPv6 site count together, for all bounds of one host.
func TestCallerOf_sites(t *testing.T) {
	from := func(ip string) admission.Caller {
		return admission.CallerOf(peer.NewContext(context.Background(),
			&peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(ip), Port: 7}}))
	}
	one, same, other := from("2001:db8:1:2::1"), from("2001:db8:1:2:3:4:5:6"), from("2001:db8:1:3::1")
	if one.Host != same.Host || one.Host == other.Host {
		t.Errorf("got %s, %s, %s; want one host for the first two", one.Host, same.Host, other.Host)
	}
	if one.Address == same.Address {
		t.Error("two connections have one address")
	}
}
