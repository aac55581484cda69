package rpc

import (
	"context"
	"net/http"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/quorate/quorate/internal/base/tlsconn"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/inproc"
)

// Inside calls all services of this member from within the process. A call passes what calls of clients pass, as the caller
// that its context names: see EnterInside.
func (s *Services) Inside() grpc.ClientConnInterface { return s.within }

// EnterInside makes calls under the context those of the sender of an HTTP request: of its address, and its certificate if it
// has shown one. Their answers count as answers to that client until done is called.
func (s *Services) EnterInside(r *http.Request) (ctx context.Context, done func()) {
	from := &peer.Peer{Addr: admission.AddressOf(r)}
	if state := tlsconn.StateOfRequest(r); state != nil {
		from.AuthInfo = credentials.TLSInfo{State: *state,
			CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}
	}
	ctx = peer.NewContext(r.Context(), from)
	var mu sync.Mutex // a page may make several calls at once
	var lent []func()
	caller := &inproc.Caller{Take: func(_ context.Context, bytes int) error {
		giveBack, err := s.options.Answers.Lend(ctx, insideCopies*int64(bytes), 0)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		lent = append(lent, giveBack)
		return nil
	}}
	return inproc.With(ctx, caller), func() {
		caller.Release()
		for _, giveBack := range lent {
			giveBack()
		}
	}
}

// LendTo lends memory for an answer that is sent to the sender of an HTTP request, of what answers to that client may have.
func (s *Services) LendTo(r *http.Request, bytes int) (giveBack func(), err error) {
	ctx := peer.NewContext(r.Context(), &peer.Peer{Addr: admission.AddressOf(r)})
	return s.options.Answers.Lend(ctx, int64(bytes), 0)
}
