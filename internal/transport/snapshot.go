package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/broadcast"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// A snapshot has a stream and a connection of its own, so that its gigabytes queue behind each other and not in
// front of the log: hello both ways, head, chunks, end; then the receiver says that it has everything.

// chunkBytes is the body of a full chunk frame.
const chunkBytes = 256<<10 - frameHeaderBytes

// SendSnapshot streams what write produces to a peer, and returns nil once the peer's handler has accepted all of
// it. Flow control reaches write: it blocks while the peer is slow. While
// Options.Snapshot.Most others run, it waits.
func (t *Transport) SendSnapshot(ctx context.Context, to consensus.MemberID, meta consensus.SnapshotMeta,
	write func(w io.Writer) error) error {
	p := t.peer(to)
	if p == nil {
		return fmt.Errorf("%w: %s", ErrUnknownPeer, to)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.ctx, func() { cancel(ErrClosed) })()
	select {
	case t.sending <- struct{}{}:
		defer func() { <-t.sending }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	conn, err := p.dial()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	err = t.stream(ctx, p, conn, &meta, write)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if err != nil {
		return fmt.Errorf("transport: snapshot to %s: %w", to, err)
	}
	return nil
}

// stream is SendSnapshot on an open connection.
func (t *Transport) stream(ctx context.Context, p *peer, conn *dialed, meta *consensus.SnapshotMeta,
	write func(w io.Writer) error) error {
	// The stream must die with an error of write, or the receiver would wait for the rest.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := conn.NewStream(ctx, &snapshotDesc, snapshotMethod, grpc.MaxCallRecvMsgSize(maxHelloBytes))
	if err != nil {
		return err
	}
	theirs, err := t.shakeHands(ctx, s, p.hello(streamNone))
	if err != nil {
		return err
	}
	p.snapshots.Add(1)
	transfer, done := t.progress.begin(p.id, true)
	defer done()
	w := &snapshotWriter{t: t, ctx: ctx, to: p.id, stream: s, transfer: transfer,
		pace: pace{perSecond: t.options.Snapshot.BytesPerSecond}, packing: p.packing(&theirs)}
	defer w.packing.close()
	head := consensus.AppendSnapshotMeta(beginFrame(nil, frameHead), meta)
	if err := w.plain(head); err != nil {
		return err
	}
	if err := write(w); err != nil {
		return err
	}
	return w.finish()
}

// snapshotWriter cuts what is written into chunks.
type snapshotWriter struct {
	t        *Transport
	ctx      context.Context
	to       consensus.MemberID
	stream   grpc.ClientStream
	transfer *transfer
	pace     pace
	packing  *packing
	buffer   *[]byte
	total    uint64
	sum      uint32
}

// Write implements io.Writer.
func (w *snapshotWriter) Write(src []byte) (int, error) {
	for rest := src; len(rest) > 0; {
		if w.buffer == nil {
			w.buffer = framePool.Get(0)
			*w.buffer = beginFrame(slices.Grow(*w.buffer, frameHeaderBytes+chunkBytes), frameChunk)
		}
		n := min(len(rest), frameHeaderBytes+chunkBytes-len(*w.buffer))
		*w.buffer = append(*w.buffer, rest[:n]...)
		rest = rest[n:]
		if len(*w.buffer) == frameHeaderBytes+chunkBytes {
			if err := w.flush(); err != nil {
				return len(src) - len(rest), err
			}
		}
	}
	return len(src), nil
}

// flush sends the chunk that is being filled.
func (w *snapshotWriter) flush() error {
	if w.buffer == nil {
		return nil
	}
	frame := w.buffer
	w.buffer = nil
	if w.t.cut(w.to) {
		return ErrCut
	}
	sealFrame(*frame)
	body := len(*frame) - frameHeaderBytes
	w.total += uint64(body)
	w.sum = crc32.Update(w.sum, castagnoli, (*frame)[frameHeaderBytes:])
	frame, err := w.packing.frame(frame)
	if err != nil {
		return err
	}
	if err := w.stream.SendMsg(&outFrame{pooled: frame}); err != nil {
		return w.reason(err)
	}
	w.transfer.bytes.Add(uint64(body))
	wait := w.pace.after(time.Now(), body)
	if wait <= 0 {
		return nil
	}
	return broadcast.Pause(w.ctx, wait)
}

func (w *snapshotWriter) plain(frame []byte) error {
	sealFrame(frame)
	if err := w.stream.SendMsg(&outFrame{plain: frame}); err != nil {
		return w.reason(err)
	}
	return nil
}

// reason finds out why a send failed; gRPC tells only the receiving half.
func (w *snapshotWriter) reason(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	var frame inFrame
	for {
		if err := w.stream.RecvMsg(&frame); err != nil {
			return err
		}
	}
}

// finish sends the rest and waits until the receiver has taken over.
func (w *snapshotWriter) finish() error {
	if err := w.flush(); err != nil {
		return err
	}
	end := binary.LittleEndian.AppendUint64(beginFrame(nil, frameEnd), w.total)
	if err := w.plain(binary.LittleEndian.AppendUint32(end, w.sum)); err != nil {
		return err
	}
	if err := w.stream.CloseSend(); err != nil {
		return err
	}
	var answer inFrame
	if err := w.stream.RecvMsg(&answer); err != nil {
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	kind, _, err := openFrame(answer.bytes)
	if err == nil && kind != frameInstalled {
		err = outOfPlace(kind, "after a snapshot")
	}
	return err
}

// serveSnapshot is the receiving end.
func (t *Transport) serveSnapshot(opened grpc.ServerStream) error {
	s, done := countStream(opened)
	defer done()
	h, evidence, unpack, err := t.accept(s)
	if err != nil {
		return err
	}
	defer unpack.close()
	if !t.hears(&h.claim, evidence) {
		return refusal(t.turnAway(&h.claim, identity.Unproved, fmt.Sprintf("nobody answers for it at the address that this "+
			"member (%v) has of %v", t.options.Self.Member, h.claim.Member)))
	}
	// An unknown sender may be a leader that this member does not know yet. It has a place of its own, and must not pause.
	taking, whose, receive := t.takingUnknown, "a sender that is not known as a member", func(frame *inFrame) error {
		return t.first.Receive(s.Context(), func() error { return s.RecvMsg(frame) })
	}
	if t.knows(&h.claim, evidence) {
		taking, whose, receive = t.taking, "known members", func(frame *inFrame) error { return s.RecvMsg(frame) }
		defer s.from.Admit()()
	}
	select {
	case taking <- struct{}{}:
		defer func() { <-taking }()
	default:
		return status.Errorf(codes.ResourceExhausted, "transport: %d snapshots of %s are arriving already, as many as may: "+
			"try again later", cap(taking), whose)
	}
	var head inFrame
	if err := receive(&head); err != nil {
		return err
	}
	kind, body, err := openFrame(head.bytes)
	if err != nil || kind != frameHead {
		return status.Error(codes.DataLoss, "transport: snapshot without a head")
	}
	meta, rest, err := consensus.DecodeSnapshotMeta(body)
	if errors.Is(err, level.ErrLater) {
		return status.Error(codes.Unimplemented, "transport: the head of a snapshot: "+err.Error())
	}
	if err != nil || len(rest) != 0 {
		return status.Error(codes.DataLoss, "transport: snapshot with a damaged head")
	}
	transfer, ended := t.progress.begin(h.claim.Member, false)
	defer ended()
	r := &snapshotReader{t: t, from: h.claim.Member, receive: receive, transfer: transfer, unpack: unpack,
		frame: inFrame{reuse: true}, begun: time.Now(), hurries: !t.knows(&h.claim, evidence)}
	if err := t.options.Handler.ReceiveSnapshot(h.claim.Member, meta, r); err != nil {
		return err
	}
	if !r.ended {
		return status.Error(codes.Internal, "transport: the snapshot was not read to its end")
	}
	installed := beginFrame(nil, frameInstalled)
	sealFrame(installed)
	return s.SendMsg(&outFrame{plain: installed})
}

// snapshotReader gives out the data of the chunks. io.EOF comes only after the end frame agreed with all of them.
type snapshotReader struct {
	t        *Transport
	from     consensus.MemberID
	receive  func(*inFrame) error
	transfer *transfer
	frame    inFrame
	unpack   *unpacker
	chunk    []byte // what is left of the current one
	total    uint64
	sum      uint32
	ended    bool
	err      error
	begun    time.Time
	hurries  bool // the sender is not known: tooSlow
}

const (
	// A snapshot of a sender that is not known brings leastRate bytes a second, once leastAfter has passed: it holds the only
	// place of such senders, and the disk that it has taken.
	leastRate  = 16 << 10
	leastAfter = 30 * time.Second
)

// tooSlow reports whether so many bytes in so much time are too few.
func tooSlow(bytes uint64, in time.Duration) bool {
	return in > leastAfter && float64(bytes) < leastRate*in.Seconds()
}

// Read implements io.Reader.
func (r *snapshotReader) Read(dst []byte) (int, error) {
	for len(r.chunk) == 0 {
		if r.err == nil {
			r.err = r.next()
		}
		if r.err != nil {
			return 0, r.err
		}
	}
	n := copy(dst, r.chunk)
	r.chunk = r.chunk[n:]
	return n, nil
}

func (r *snapshotReader) next() error {
	if err := r.receive(&r.frame); err != nil {
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	if r.t.cut(r.from) {
		return ErrCut
	}
	if past := time.Since(r.begun); r.hurries && tooSlow(r.total, past) {
		return status.Errorf(codes.DeadlineExceeded, "transport: a snapshot of a sender that is not known as a member brought "+
			"%d bytes in %v: it brings %d a second at least", r.total, past.Round(time.Second), leastRate)
	}
	plain, err := r.unpack.plain(r.frame.bytes)
	if err != nil {
		return err
	}
	kind, body, err := openFrame(plain)
	switch {
	case err != nil:
		return err
	case kind == frameChunk:
		r.chunk = body
		r.total += uint64(len(body))
		r.sum = crc32.Update(r.sum, castagnoli, body)
		r.transfer.bytes.Add(uint64(len(body)))
		return nil
	case kind == frameEnd && len(body) == 12:
		if binary.LittleEndian.Uint64(body) != r.total || binary.LittleEndian.Uint32(body[8:]) != r.sum {
			return fmt.Errorf("%w: snapshot of %d bytes does not match its end", ErrCorruptFrame, r.total)
		}
		r.ended = true
		return io.EOF
	}
	return outOfPlace(kind, "in a snapshot")
}

// pace spreads bytes over time: it tells how long to wait before more may be sent.
type pace struct {
	perSecond int64
	next      time.Time
}

// after notes that bytes were sent at now. Time that was not used is not saved up for a burst.
func (p *pace) after(now time.Time, bytes int) time.Duration {
	if p.perSecond <= 0 {
		return 0
	}
	if p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(time.Duration(float64(bytes) / float64(p.perSecond) * float64(time.Second)))
	return p.next.Sub(now)
}
