package transport

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/base/monotime"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// stream is what the two ends of a gRPC stream have in common.
type stream interface {
	SendMsg(m any) error
	RecvMsg(m any) error
}

// voice is a life of a member that has a stream to us, or we to it.
type voice struct {
	claim identity.Claim
	heard time.Time // when something arrived on the stream last; zero: never
}

// counters count what passed one way.
type counters struct {
	messages, frames, bytes, plain atomic.Uint64
	cargo                          [Cargos]atomic.Uint64
}

// carry counts what a frame carries.
func (c *counters) carry(cargo *cargoBytes) {
	for i, n := range cargo {
		if n > 0 {
			c.cargo[i].Add(n)
		}
	}
}

// add counts a frame of so many bytes, which are plain ones when it is unpacked.
func (c *counters) add(messages, bytes, plain int) {
	c.messages.Add(uint64(messages))
	c.frames.Add(1)
	c.bytes.Add(uint64(bytes))
	c.plain.Add(uint64(plain))
}

// writer moves an outbox into a stream. It is the only one that sends on the stream.
type writer struct {
	t       *Transport
	to      consensus.MemberID
	stream  stream
	box     *outbox
	count   *counters
	packing *packing              // nil: nothing is packed
	sent    func(bytes int) error // called after every frame of messages; may be nil
	every   time.Duration         // pause between calls of tick
	tick    func() error          // may be nil
	hangUps <-chan struct{}       // asks to send what waits and end; may be nil

	frame    outFrame
	messages []consensus.Message
	pongs    []uint64
}

// run writes until ctx ends, a send fails, or a hang-up was asked for, which returns nil.
func (w *writer) run(ctx context.Context) error {
	var ticks <-chan time.Time
	if w.tick != nil {
		ticker := time.NewTicker(w.every)
		defer ticker.Stop()
		ticks = ticker.C
		if err := w.tick(); err != nil {
			return err
		}
	}
	for {
		select {
		case <-w.box.wake:
			if err := w.flush(); err != nil {
				return err
			}
		case <-ticks:
			if err := w.tick(); err != nil {
				return err
			}
		case <-w.hangUps:
			return w.flush()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// flush sends everything that waits, in as few frames as their size allows.
func (w *writer) flush() error {
	w.messages, w.pongs = w.box.take(w.messages, w.pongs)
	defer w.box.sent()
	if w.t.cut(w.to) {
		w.box.discard(len(w.messages))
		clear(w.messages)
		return nil
	}
	for _, number := range w.pongs {
		if err := w.plain(tickFrame(framePong, number)); err != nil {
			return err
		}
	}
	for rest := w.messages; len(rest) > 0; {
		n, size := batch(rest)
		buffer := framePool.Get(0)
		var cargo cargoBytes
		*buffer, cargo = appendMessages(slices.Grow(*buffer, size), rest[:n])
		plain := len(*buffer)
		buffer, err := w.packing.frame(buffer)
		if err != nil {
			w.box.discard(len(rest))
			return err
		}
		w.frame = outFrame{pooled: buffer}
		bytes := len(*buffer)
		if err := w.stream.SendMsg(&w.frame); err != nil {
			w.box.discard(len(rest))
			return err
		}
		w.count.add(n, bytes, plain)
		w.count.carry(&cargo)
		if w.sent != nil {
			if err := w.sent(bytes); err != nil {
				return err
			}
		}
		rest = rest[n:]
	}
	// The queue must not keep alive what was sent.
	clear(w.messages)
	return nil
}

func (w *writer) plain(frame []byte) error {
	w.frame = outFrame{plain: frame}
	return w.stream.SendMsg(&w.frame)
}

// batch tells how many of messages fit into a frame, at least one, and their size.
func batch(messages []consensus.Message) (n, size int) {
	size = frameHeaderBytes + 10
	for i := range messages {
		more := messages[i].SizeBytes()
		if i > 0 && size+more > softFrameBytes {
			return i, size
		}
		size += more
	}
	return len(messages), size
}

// reader moves a stream into the handler. It is the only one that receives from the stream.
type reader struct {
	t      *Transport
	ctx    context.Context // of the stream
	claim  *identity.Claim // as the handshake showed
	in     *incoming       // nil: we dialled
	proved bool            // what the stream carries is believed: another life would end it
	stream stream
	box    *outbox             // where the answers to pings go
	pong   func(number uint64) // may be nil
	heard  *monotime.Atomic    // when something arrived last
	unpack *unpacker           // nil: nothing packed was asked for

	admit func() (leave func()) // of the connection, once the stream is known to be a member's; nil: we dialled
	hold  func(more int64)      // counts what a stream holds that is not known to be a member's; nil: we dialled
	leave func()                // nil: not admitted

	toldRemoved time.Time // when it was told last that it was removed
}

// admitKnown admits the connection as soon as there is evidence that the stream is that of a member of the configuration. The
// configuration may come to have the sender only after its stream was opened.
func (r *reader) admitKnown() {
	if r.admit != nil && r.leave == nil && r.t.believes(r.in) && r.t.knows(r.claim, identity.Dialled) {
		r.leave = r.admit()
		r.unpack.known()
	}
}

func (r *reader) end() {
	if r.leave != nil {
		r.leave()
	}
}

// run reads until the stream ends, and returns why.
func (r *reader) run() error {
	for {
		var frame inFrame
		if err := r.stream.RecvMsg(&frame); err != nil {
			return err
		}
		plain, err := r.unpack.plain(frame.bytes)
		if err != nil {
			return err
		}
		kind, body, err := openFrame(plain)
		if err != nil {
			return err
		}
		if r.t.cut(r.claim.Member) {
			continue
		}
		r.heard.Set(time.Now())
		switch kind {
		case frameMessages:
			if err := r.receive(body, len(frame.bytes), len(plain)); err != nil {
				return err
			}
		case framePing, framePong:
			number, err := decodeTick(body)
			if err != nil {
				return err
			}
			if kind == framePing {
				r.box.addPong(number)
				r.tellRemoved() // it may have nothing to say: none that it knows to vote is left
			} else if r.pong != nil {
				r.pong(number)
			}
		default:
			return outOfPlace(kind, "among messages")
		}
	}
}

// prove finds out whether what the stream carries is believed. A member may confirm now a stream that none confirmed when it
// was opened: the configuration had no such member yet, or its address could not be reached.
func (r *reader) prove() error {
	if r.proved {
		return nil
	}
	if r.in != nil && !r.t.believes(r.in) {
		p := r.t.peer(r.claim.Member)
		if p == nil || !p.confirmed(r.ctx, &r.in.token) {
			return nil
		}
		if err := r.t.welcome(r.ctx, r.claim, identity.Dialled); err != nil {
			return err
		}
		r.t.promote(r.in)
	}
	r.proved = r.t.guard.proved(r.claim)
	return nil
}

// decode reads messages. Those of a sender that is not known take little memory beside the body, which counts with them until
// done is called: they may have been packed, and the core may be slow to take them. So do those that a process sends back that
// we dialled, and of which there are few.
func (r *reader) decode(body []byte) (messages []consensus.Message, done func(), err error) {
	if r.leave != nil {
		messages, err = decodeMessages(body)
		return messages, func() {}, err
	}
	messages, taken, err := decodeWithin(body, nonMemberRoom(len(body)))
	if r.hold == nil {
		return messages, func() {}, err
	}
	held := int64(len(body) + taken)
	r.hold(held)
	return messages, func() { r.hold(-held) }, err
}

func (r *reader) receive(body []byte, bytes, plain int) error {
	messages, done, err := r.decode(body)
	defer done()
	if err != nil {
		return err
	}
	self, from := r.t.options.Self.Member, r.claim.Member
	for i := range messages {
		// The handshake confirms one sender; no member speaks for another.
		if m := &messages[i]; m.From != from || m.To != self {
			return fmt.Errorf("%w: a message from %s to %s on the stream of %s to %s",
				ErrWrongMember, m.From, m.To, from, self)
		}
	}
	if p := r.t.peer(from); p != nil {
		p.in.add(len(messages), bytes, plain)
	}
	if err := r.prove(); err != nil {
		return err
	}
	r.admitKnown()
	messages, refused := r.t.receiver().Admit(from, r.claim.Storage, r.proved, messages)
	if refused != nil {
		return refused
	}
	if len(messages) > 0 {
		r.t.options.Handler.Receive(messages)
	} else if !r.t.receiver().Hears(from, r.proved) && !r.tellRemoved() {
		r.t.unheard(r.claim)
	}
	return nil
}

// removedPause is how often a removed member that speaks is told so.
const removedPause = 100 * time.Millisecond

// tellRemoved answers a removed member, of which nothing is heard, that it was removed, as the core does while it hears it: the
// answer goes the way that it has opened, so that it has judged who answers. It reports false for others.
func (r *reader) tellRemoved() bool {
	removed := r.t.options.Identity.Removed
	if r.in == nil || removed == nil || r.t.guard.config.Load().Contains(r.claim.Member) || !removed(r.claim.Member) {
		return false
	}
	if now := time.Now(); now.Sub(r.toldRemoved) >= removedPause {
		r.toldRemoved = now
		r.box.addOne(&consensus.Message{Kind: consensus.MsgRemoved, From: r.t.options.Self.Member, To: r.claim.Member})
	}
	return true
}
