package member

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/transport"
)

// errNoTransport means that the member has no transport yet.
var errNoTransport = errors.New("member: it has not started yet")

// link is the transport, which Start sets. A transport serves, and calls this member's handler, before Start: until Start every
// method of link returns at once, with a zero result or with errNoTransport.
type link struct {
	set atomic.Pointer[transport.Transport]
}

func (l *link) ConnectedSince(id consensus.MemberID) (at time.Time, connected bool) {
	if t := l.set.Load(); t != nil {
		return t.ConnectedSince(id)
	}
	return at, false
}

func (l *link) Distance(id consensus.MemberID) (distance time.Duration, known bool) {
	if t := l.set.Load(); t != nil {
		return t.Distance(id)
	}
	return 0, false
}

func (l *link) Send(messages []consensus.Message) {
	if t := l.set.Load(); t != nil {
		t.Send(messages)
	}
}

func (l *link) SendSnapshot(
	ctx context.Context, to consensus.MemberID, meta consensus.SnapshotMeta, write func(io.Writer) error,
) error {
	if t := l.set.Load(); t != nil {
		return t.SendSnapshot(ctx, to, meta, write)
	}
	return errNoTransport
}

func (l *link) Call(
	ctx context.Context, to consensus.MemberID, method string, body []byte, most int,
) ([]byte, error) {
	if t := l.set.Load(); t != nil {
		return t.Call(ctx, to, method, body, most)
	}
	return nil, errNoTransport
}

func (l *link) CallURL(ctx context.Context, url, method string, body []byte, most int) ([]byte, error) {
	if t := l.set.Load(); t != nil {
		return t.CallURL(ctx, url, method, body, most)
	}
	return nil, errNoTransport
}

func (l *link) Find(ctx context.Context, id consensus.MemberID, url string) (transport.Presence, error) {
	if t := l.set.Load(); t != nil {
		return t.Find(ctx, id, url)
	}
	return transport.Unsure, errNoTransport
}

func (l *link) ShowsCertificateFor(ctx context.Context, urls []string) bool {
	t := l.set.Load()
	return t != nil && t.ShowsCertificateFor(ctx, urls)
}

func (l *link) WantsCertificates() bool {
	t := l.set.Load()
	return t != nil && t.WantsCertificates()
}

func (l *link) LookForStrays(ctx context.Context) {
	if t := l.set.Load(); t != nil {
		t.LookForStrays(ctx)
	}
}

func (l *link) Strays() []string {
	if t := l.set.Load(); t != nil {
		return t.Strays()
	}
	return nil
}

func (l *link) OtherHistories() []string {
	if t := l.set.Load(); t != nil {
		return t.OtherHistories()
	}
	return nil
}

func (l *link) Met() []identity.Claim {
	if t := l.set.Load(); t != nil {
		return t.Met()
	}
	return nil
}

func (l *link) Trouble(id consensus.MemberID) (trouble transport.Trouble, found bool) {
	if t := l.set.Load(); t != nil {
		return t.Trouble(id)
	}
	return trouble, false
}

func (l *link) Distrust(id consensus.MemberID) error {
	if t := l.set.Load(); t != nil {
		return t.Distrust(id)
	}
	return errNoTransport
}
