package transport

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// Any process that learns a member's claim, which a hello tells, can repeat it to the letter. So a stream is the member's only
// if the member confirms it at its address:
//
//	member 2, or an impostor          member 1                      the address that member 1 has of member 2
//	          | hello, token            |                                         |
//	          | ----------------------> | methodConfirm, a challenge              |
//	          |                         | --------------------------------------> |
//	          |                         |       HMAC of the challenge under the token for member 1
//	          |                         | <-------------------------------------- |
//
// A member draws one token for each peer, and tells it only to the process that listens at that peer's address. The answer,
// which any process may ask for, does not show it. It is kept: it is good for all streams of one start of the peer.

const (
	tokenBytes = 16
	// methodConfirm asks a member for the HMAC of the body, the challenge, under its token for the caller.
	methodConfirm  = "transport.confirm"
	challengeBytes = 16
	// mostSumBytes bounds the answer: a later version may say more in it than a sum.
	mostSumBytes = 4 << 10
	// tokenHeader is the header of a call that bears the token.
	tokenHeader = "token-bin"
	// confirmPause is the mean time between two questions at the address of one member, whichever process calls in its name; a
	// few may come at once, confirmBurst apart from the mean.
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
	last atomic.Pointer[[]confirmation] // to the last question that was answered; nil: there is no answer

	mu  sync.Mutex
	out *question // nil: none is out
	due time.Time // when the questions so far would be due if each took confirmPause
}

// question is one round of asking at the addresses of a peer. No goroutine owns it: one that waits for it may go.
type question struct {
	done chan struct{} // closed when there are answers, or there will be none
}

// confirmation is the answer to one challenge.
type confirmation struct {
	challenge [challengeBytes]byte
	sum       [sha256.Size]byte
}

// replies are what came back to one challenge. One that is no sum confirms nothing: the peer opens no streams to this member.
type replies struct {
	came bool
	all  []confirmation
}

// add takes an answer, or why there is none. A false one is an answer that confirms nothing.
func (r *replies) add(challenge [challengeBytes]byte, sum []byte, err error) {
	r.came = r.came || err == nil || errors.Is(err, ErrLargeAnswer)
	if err == nil && len(sum) == sha256.Size {
		r.all = append(r.all, confirmation{challenge, [sha256.Size]byte(sum)})
	}
}

// note keeps replies. No answer at all takes back none.
func (v *confirmations) note(r *replies) {
	if r.came {
		v.last.Store(&r.all)
	}
}

// cover reports whether one of the last answers was made with a token.
func (v *confirmations) cover(t *token) bool {
	last := v.last.Load()
	return last != nil && slices.ContainsFunc(*last, func(c confirmation) bool {
		return hmac.Equal(c.sum[:], t.answer(c.challenge[:]))
	})
}

// mayAsk counts a question, unless there were too many. v.mu is held.
func (v *confirmations) mayAsk(now time.Time) bool {
	if v.due.Sub(now) >= confirmBurst {
		return false
	}
	v.due = now.Add(max(0, v.due.Sub(now)) + confirmPause)
	return true
}

// ask returns the question that is out, else a new one, which the caller has asked; nil if there were too many.
func (v *confirmations) ask(now time.Time) (q *question, fresh bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.out != nil {
		return v.out, false
	}
	if !v.mayAsk(now) {
		return nil, false
	}
	v.out = &question{done: make(chan struct{})}
	return v.out, true
}

// answered ends the question that is out.
func (v *confirmations) answered() {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.out.done)
	v.out = nil
}

// confirmed reports whether who answers at the address of a peer confirms a stream that came with a token. It asks there, if
// that was not done too often, and waits for the answer until ctx ends: whoever gives up takes no question from others.
func (p *peer) confirmed(ctx context.Context, t *token) bool {
	v := &p.confirmations
	if v.cover(t) { // a question that somebody else caused does not delay it
		return true
	}
	for range 2 { // the one that is out may be of before the stream
		q, fresh := v.ask(time.Now())
		switch {
		case q == nil:
			return v.cover(t) // it may have been answered meanwhile
		case fresh:
			own := *t
			p.t.running.Go(func() {
				defer v.answered()
				p.askConfirmation(&own)
			})
		}
		select {
		case <-q.done:
		case <-ctx.Done():
			return false
		}
		if v.cover(t) {
			return true
		}
		if fresh {
			return false
		}
	}
	return false
}

// askConfirmation asks over the connection to the peer that is up, else over new ones to each of its URLs, until an answer
// confirms a token: at one of them a process may answer that is not the peer, or does not have its data. All answers are kept.
func (p *peer) askConfirmation(t *token) {
	if p.t.cut(p.id) {
		return
	}
	ctx, cancel := context.WithTimeout(p.t.ctx, p.t.options.Times.DeadAfter/4)
	defer cancel()
	var challenge [challengeBytes]byte
	_, _ = rand.Read(challenge[:])
	h := p.t.hello(p.id, streamNone)
	var said replies
	if conn := p.express.conn.Load(); conn != nil {
		sum, err := call(ctx, conn.ClientConn, h, methodConfirm, challenge[:], mostSumBytes)
		if said.add(challenge, sum, err); said.came {
			p.confirmations.note(&said)
			return
		}
	}
	for _, url := range p.addresses() {
		sum, err := callURL(ctx, &p.t.options, h, url, methodConfirm, challenge[:], mostSumBytes)
		if said.add(challenge, sum, err); err == nil && bytes.Equal(sum, t.answer(challenge[:])) {
			break
		}
	}
	p.confirmations.note(&said)
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

// receiver judges what comes in the name of members.
func (t *Transport) receiver() identity.Receiver {
	return identity.Receiver{Self: t.options.Self.Member, Known: t.guard.config.Load(), Rules: t.guard.rules}
}

// hears reports whether what a stream carries is taken: it is the member's, or this process joins and knows no member.
func (t *Transport) hears(c *identity.Claim, evidence identity.Evidence) bool {
	return t.receiver().Hears(c.Member, t.knows(c, evidence))
}

// knows reports whether there is evidence that a stream is that of a member of the configuration.
func (t *Transport) knows(c *identity.Claim, evidence identity.Evidence) bool {
	return t.guard.config.Load().Contains(c.Member) && evidence.Believed(t.guard.rules) && t.guard.proved(c)
}

// evidenceOf tells what speaks for the claim at the begin of a stream that a process has opened to this member.
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
