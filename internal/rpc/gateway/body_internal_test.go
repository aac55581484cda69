package gateway

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/limits/memory"
)

// newIntake returns one of requests of at most, and all together, so many bytes.
func newIntake(total int64) *intake {
	return &intake{limit: total, held: admission.NewLedger(total), first: admission.NewFirstMessages(admission.FirstMessageLimits{})}
}

// Ensure that requests by JSON count as what their client hosts hold, with what is made of them, that an address has no more than its
// share, and that what was answered counts no more.
func TestIntake_readBody(t *testing.T) {
	const total = 1 << 20
	in := newIntake(total)
	read := func(host string, body []byte) (leave func(), err error) {
		r := httptest.NewRequest(http.MethodPost, "/v3/kv/put", bytes.NewReader(body))
		return in.readBody(httptest.NewRecorder(), r, host)
	}
	body := bytes.Repeat([]byte("x"), total/5)
	leave, err := read("a", body)
	if err != nil {
		t.Fatal(err)
	}
	if got := in.held.Stats().Bytes; got < 2*int64(len(body)) {
		t.Errorf("a request of %d bytes counts as %d", len(body), got)
	}
	if _, err := read("a", body); !errors.Is(err, errTooManyBodies) {
		t.Errorf("more than the share of an address: got %v", err)
	}
	if _, err := read("b", bytes.Repeat([]byte("{"), 4000)); !errors.Is(err, errTooManyBodies) {
		t.Errorf("objects that take more than there is: got %v", err)
	}
	if _, err := read("b", bytes.Repeat([]byte(","), 20_000)); !errors.Is(err, errTooManyBodies) {
		t.Errorf("elements that take more than there is: got %v", err)
	}
	other, err := read("b", body[:total/20])
	if err != nil {
		t.Errorf("another address: got %v", err)
	}
	leave()
	other()
	if got := in.held.Stats().Bytes; got != 0 || in.bytes.Load() != 0 || in.refused.Load() != 3 {
		t.Errorf("afterwards %d bytes count, %d, %d were refused", got, in.bytes.Load(), in.refused.Load())
	}
}

// Ensure that all that the gateway admits, for however many addresses, is within what --memory leaves for clients and for answers.
func TestGateway_withinMemory(t *testing.T) {
	shares := memory.Divide(memory.MinLimit)
	held := admission.NewLedger(shares.Clients.Total)
	in := &intake{limit: 1 << 20, held: held}
	for _, host := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		for range 100 {
			if _, err := in.open(host, 1<<20); err != nil && status.Code(err) != codes.ResourceExhausted {
				t.Fatal(err)
			}
		}
	}
	if got := held.Stats().Bytes; got > shares.Clients.Total || got < shares.Clients.Total/2 {
		t.Errorf("requests by JSON take %d bytes, all clients may hold %d", got, shares.Clients.Total)
	}
}
