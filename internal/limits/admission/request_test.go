package admission_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/quorate/quorate/internal/limits/admission"
)

// Ensure that a client of a unix socket cannot pass for a host of the network: it names its end as it likes.
func TestAddressOf(t *testing.T) {
	for _, row := range []struct {
		local  net.Addr
		remote string
		want   string
	}{
		{&net.TCPAddr{}, "10.0.0.7:80", "tcp 10.0.0.7:80"},
		{&net.TCPAddr{}, "[fe80::1%eth0]:80", "tcp [fe80::1%eth0]:80"},
		{&net.UnixAddr{Net: "unix"}, "10.0.0.7:80", "unix 10.0.0.7:80"},
		{&net.UnixAddr{Net: "unix"}, "@", "unix @"},
	} {
		ctx := context.WithValue(t.Context(), http.LocalAddrContextKey, row.local)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v3/kv/range", nil)
		r.RemoteAddr = row.remote
		if from := admission.AddressOf(r); from.Network()+" "+from.String() != row.want {
			t.Errorf("%s: got %s %s", row.want, from.Network(), from)
		}
	}
}
