package snapshots

import (
	"io"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// transfers knows how far the snapshots are that this member sends. The zero value is ready.
type transfers struct {
	mu   sync.Mutex
	byID map[consensus.MemberID]*outgoing
}

// outgoing is one snapshot on its way. The rate is that of the last seconds, so that a stall shows.
type outgoing struct {
	mu          sync.Mutex
	clock       env.Clock
	sent, total int64
	before, now sample
}

// sample is how much had been sent at a time.
type sample struct {
	at   time.Time
	sent int64
}

// sampleInterval is how far samples are apart; the rate is measured over one or two of them.
const sampleInterval = time.Second

// begin notes that the snapshot in dir is about to be written to w, and returns a writer that counts; done forgets it.
func (t *transfers) begin(
	to consensus.MemberID, w io.Writer, fs env.FS, dir string, clock env.Clock,
) (counted io.Writer, done func(), err error) {
	total, err := sizeOf(fs, dir)
	if err != nil {
		return nil, nil, err
	}
	first := sample{at: clock.Now()}
	o := &outgoing{clock: clock, total: total, before: first, now: first}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		t.byID = map[consensus.MemberID]*outgoing{}
	}
	t.byID[to] = o
	return countingWriter{w: w, o: o}, func() { t.end(to, o) }, nil
}

func (t *transfers) end(to consensus.MemberID, o *outgoing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[to] == o { // else a later leadership began another one
		delete(t.byID, to)
	}
}

// of returns how far the snapshot to a member is, or nil if there is none.
func (t *transfers) of(to consensus.MemberID) *membership.TransferView {
	t.mu.Lock()
	o := t.byID[to]
	t.mu.Unlock()
	if o == nil {
		return nil
	}
	return o.view()
}

func (o *outgoing) view() *membership.TransferView {
	o.mu.Lock()
	defer o.mu.Unlock()
	v := &membership.TransferView{Sent: min(o.sent, o.total), Total: o.total}
	if took := o.clock.Now().Sub(o.before.at); took > 0 {
		v.BytesPerSecond = int64(float64(o.sent-o.before.sent) / took.Seconds())
	}
	return v
}

func (o *outgoing) add(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent += int64(n)
	if now := o.clock.Now(); now.Sub(o.now.at) >= sampleInterval {
		o.before, o.now = o.now, sample{at: now, sent: o.sent}
	}
}

// countingWriter counts what went through.
type countingWriter struct {
	w io.Writer
	o *outgoing
}

func (c countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.o.add(n)
	return n, err
}

// sizeOf sums the files of a snapshot, its manifest among them.
func sizeOf(fs env.FS, dir string) (int64, error) {
	names, err := fs.List(dir)
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for _, name := range names {
		file, err := fs.Stat(fs.PathJoin(dir, name))
		if err != nil {
			return 0, err
		}
		total += file.Size()
	}
	return total, nil
}
