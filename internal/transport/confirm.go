package transport

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// Whoever learns a member's claim, which a hello tells, can repeat it to the letter. So a stream is the member's only if the
// member confirms it at its address:
//
//	member 2, or who says so          member 1                      the address that member 1 has of member 2
//	          | hello, token            |                                         |
//	          | ----------------------> | methodConfirm, a challenge              |
//	          |                         | --------------------------------------> |
//	          |                         |       HMAC of the challenge under the token for member 1
//	          |                         | <-------------------------------------- |
//
// A member draws one token for each peer, and tells it nobody but who listens at that peer's address. The answer, which
// anybody may ask for, does not show it. It is kept: it is good for all streams of one start of the peer.

const (
	tokenBytes = 16
	// canConfirm is the bit of a hello that says that its sender answers methodConfirm.
	canConfirm = 1 << 1
	// methodConfirm asks a member for the HMAC of the body, the challenge, under its token for the caller.
	methodConfirm  = "transport.confirm"
	challengeBytes = 16
	// tokenHeader is the header of a call that bears the token.
	tokenHeader = "token-bin"
	// confirmPause is the mean time between two questions at the address of one member, whoever calls in its name; a few may
	// come at once, confirmBurst apart from the mean.
	confirmPause = time.Second
	confirmBurst = 8 * confirmPause
)

type token [tokenBytes]byte

func newToken() (t token) {
	_, _ = rand.Read(t[:]) // it never fails
	return t
}

// tokenOf takes the token of a call; it stays zero if there is none.
func tokenOf(ctx context.Context, t *token) {
	if sent := metadata.ValueFromIncomingContext(ctx, tokenHeader); len(sent) == 1 && len(sent[0]) == tokenBytes {
		*t = token([]byte(sent[0]))
	}
}

func (t *token) answer(challenge []byte) []byte {
	sum := hmac.New(sha256.New, t[:])
	sum.Write(challenge)
	return sum.Sum(nil)
}

// confirmations are what a peer has answered at its address.
type confirmations struct {
	last atomic.Pointer[confirmation] // nil: there is no answer

	asking sync.Mutex // held while a question is out: streams and calls that the last answer does not cover wait for the next
	due    time.Time  // when the questions so far would be due if each took confirmPause
}

// confirmation is the answer to one challenge.
type confirmation struct {
	challenge [challengeBytes]byte
	sum       [sha256.Size]byte
}

// note keeps an answer. One of another length confirms nothing: the peer opens no streams to this member.
func (v *confirmations) note(challenge [challengeBytes]byte, sum []byte) {
	if len(sum) != sha256.Size {
		v.last.Store(nil)
		return
	}
	v.last.Store(&confirmation{challenge, [sha256.Size]byte(sum)})
}

// cover reports whether the last answer was made with a token.
func (v *confirmations) cover(t *token) bool {
	last := v.last.Load()
	return last != nil && hmac.Equal(last.sum[:], t.answer(last.challenge[:]))
}

// mayAsk counts a question, unless there were too many.
func (v *confirmations) mayAsk(now time.Time) bool {
	if v.due.Sub(now) >= confirmBurst {
		return false
	}
	v.due = now.Add(max(0, v.due.Sub(now)) + confirmPause)
	return true
}

// confirmed reports whether who answers at the address of a peer confirms a stream that came with a token. It asks there, if
// that was not done too often, and waits for the answer. A member of a build that knows no tokens, as it has answered itself
// when it was dialled, is believed.
func (p *peer) confirmed(ctx context.Context, t *token) bool {
	v := &p.confirmations
	if p.older.Load() || v.cover(t) { // a question that somebody else caused does not delay it
		return true
	}
	v.asking.Lock()
	defer v.asking.Unlock()
	switch {
	case v.cover(t):
		return true
	case !v.mayAsk(time.Now()):
		return false
	}
	var challenge [challengeBytes]byte
	_, _ = rand.Read(challenge[:])
	return p.askConfirmation(ctx, challenge[:], func(sum []byte) bool {
		v.note(challenge, sum)
		return v.cover(t)
	})
}

// askConfirmation asks over the connection to the peer that is up, else over new ones to each of its URLs, until an answer
// confirms what is asked: at one of them a process may answer that is not the peer, or does not have its data.
func (p *peer) askConfirmation(ctx context.Context, challenge []byte, confirms func(sum []byte) bool) bool {
	if p.t.cut(p.id) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, p.t.options.Times.DeadAfter/4)
	defer cancel()
	defer context.AfterFunc(p.t.ctx, cancel)()
	h := p.t.hello(p.id, streamNone)
	if conn := p.express.conn.Load(); conn != nil {
		if sum, err := call(ctx, conn.ClientConn, h, methodConfirm, challenge); err == nil {
			return confirms(sum)
		}
	}
	for _, url := range p.addresses() {
		sum, err := callURL(ctx, &p.t.options, h, url, methodConfirm, challenge)
		if err == nil && confirms(sum) {
			return true
		}
	}
	return false
}

// confirm answers methodConfirm: with nothing if this member opens no streams to the caller.
func (t *Transport) confirm(to consensus.MemberID, challenge []byte) ([]byte, error) {
	if len(challenge) != challengeBytes {
		return nil, status.Error(codes.InvalidArgument, "transport: a challenge has 16 bytes")
	}
	if p := t.peer(to); p != nil {
		return p.token.answer(bytes.Clone(challenge)), nil
	}
	return nil, nil
}

// hears reports whether what a stream carries is taken: it is the member's, or in the name of nobody in the configuration.
func (t *Transport) hears(c *identity.Claim, evidence identity.Evidence) bool {
	return !t.guard.config.Load().Contains(c.Member) || t.knows(c, evidence)
}

// knows reports whether there is evidence that a stream is that of a member of the configuration.
func (t *Transport) knows(c *identity.Claim, evidence identity.Evidence) bool {
	return t.guard.config.Load().Contains(c.Member) && evidence.Believed(t.guard.rules) && t.guard.proved(c)
}

// evidenceOf tells what speaks for the claim at the begin of a stream that somebody has opened to this member.
func (t *Transport) evidenceOf(ctx context.Context, h *hello) identity.Evidence {
	evidence := t.evidence(ctx, &h.claim)
	if evidence != identity.Said {
		return evidence
	}
	if p := t.peer(h.claim.Member); p != nil && p.confirmed(ctx, &h.token) {
		return identity.Dialled
	}
	return identity.Said
}
