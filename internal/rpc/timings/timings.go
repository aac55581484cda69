package timings

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/histogram"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/counts"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/rpc/metrics"
)

// slowRead is from when on a wait for the leader's word counts as slow: after this time etcd asks the leader again.
const slowRead = 500 * time.Millisecond

// Kinds of requests that are no commands, by etcd's names.
const (
	Range       = "Range"
	ReadonlyTxn = "ReadonlyTxn"
)

// Bounds as etcd's, in seconds.
const (
	rangeFirst    = 0.0001
	rangeBounds   = 20
	requestFirst  = 0.001
	requestBounds = 14
	scanFirst     = 0.01
	scanBounds    = 15
	backupBounds  = 17
	defragFirst   = 0.1
	defragBounds  = 13
)

// outcomes are the histograms of what failed and of what succeeded.
type outcomes [2]*histogram.Histogram

func newOutcomes(first float64, bounds int) *outcomes {
	return &outcomes{histogram.New(first, bounds), histogram.New(first, bounds)}
}

func (o *outcomes) observe(took time.Duration, success bool) { o.of(success).Observe(took.Seconds()) }

func (o *outcomes) of(success bool) *histogram.Histogram {
	if success {
		return o[1]
	}
	return o[0]
}

// collect shows those that have observed something.
func (o *outcomes) collect(e *metrics.Emitter, name, help string, labels ...string) {
	for at, h := range o {
		if count, _, _ := h.Read(); count > 0 {
			e.Distribution(name, help, h, append(labels[:len(labels):len(labels)], "success", strconv.FormatBool(at == 1))...)
		}
	}
}

// Timings are how long parts of requests took. Use New.
type Timings struct {
	// Hash, HashKV, Defragment and Snapshot of the Maintenance service.
	Hash, HashKV, Defragment, Backup Scan

	clock                  env.Clock
	requests               map[string]*outcomes // by kind; never written to
	ranges                 *outcomes
	readsFailed, readsSlow atomic.Uint64

	// Of the loops that send to watchers: all of a message, its part for each event, answers to requests, and progress.
	watchEvents, watchEvent, watchControl, watchProgress *histogram.Histogram
}

// New returns empty timings.
func New(clock env.Clock) *Timings {
	request := func() *histogram.Histogram { return histogram.New(requestFirst, requestBounds) }
	t := &Timings{
		clock: clock, ranges: newOutcomes(rangeFirst, rangeBounds),
		requests: map[string]*outcomes{
			Range: newOutcomes(requestFirst, requestBounds), ReadonlyTxn: newOutcomes(requestFirst, requestBounds),
		},
		Hash:       Scan{took: histogram.New(scanFirst, scanBounds), clock: clock},
		HashKV:     Scan{took: histogram.New(scanFirst, scanBounds), clock: clock},
		Defragment: Scan{took: histogram.New(defragFirst, defragBounds), clock: clock},
		Backup:     Scan{took: histogram.New(scanFirst, backupBounds), clock: clock},

		watchEvents: request(), watchEvent: request(), watchControl: request(), watchProgress: request(),
	}
	for _, op := range counts.Ops() {
		t.requests[op.String()] = newOutcomes(requestFirst, requestBounds)
	}
	return t
}

// Scan is work on the whole store.
type Scan struct {
	clock   env.Clock
	took    *histogram.Histogram
	running atomic.Int64
}

// Begin notes that work begins. done is to be called when it ends; only what succeeds is timed.
func (s *Scan) Begin() (done func(err error) time.Duration) {
	begun := s.clock.Now()
	s.running.Add(1)
	return func(err error) time.Duration {
		s.running.Add(-1)
		took := s.clock.Now().Sub(begun)
		if err == nil {
			s.took.Observe(took.Seconds())
		}
		return took
	}
}

// Now is when something begins that is to be timed.
func (t *Timings) Now() time.Time { return t.clock.Now() }

func (t *Timings) since(begun time.Time) time.Duration { return t.clock.Now().Sub(begun) }

// Request is to be deferred with the time at which a request of a kind began.
func (t *Timings) Request(kind string, begun time.Time, err *error) {
	t.requests[kind].observe(t.since(begun), *err == nil)
}

// Command notes how long a command took that went through the log.
func (t *Timings) Command(command *kv.Command, begun time.Time, err error) {
	t.requests[counts.OpOf(command).String()].observe(t.since(begun), err == nil)
}

// Traced has the time of a request of a kind be known by its trace: after Request, or Command.
func (t *Timings) Traced(kind string, begun time.Time, err error, trace string) {
	now := t.clock.Now()
	t.requests[kind].of(err == nil).Exemplify(histogram.Exemplar{Value: now.Sub(begun).Seconds(), Trace: trace, At: now})
}

// KindOf is the kind of a command.
func KindOf(command *kv.Command) string { return counts.OpOf(command).String() }

// Commands returns how many commands that went through the log have succeeded, and how long these took together.
func (t *Timings) Commands() (count uint64, sum time.Duration) {
	for _, op := range counts.Ops() {
		n, seconds, _ := t.requests[op.String()][1].Read()
		count += n
		sum += time.Duration(seconds * float64(time.Second))
	}
	return count, sum
}

// Succeeded is the histogram of the seconds that requests of a kind took which succeeded. It is for reading.
func (t *Timings) Succeeded(kind string) *histogram.Histogram { return t.requests[kind].of(true) }

// Range notes, and returns, how long it took to read a range from the store.
func (t *Timings) Range(begun time.Time, err error) time.Duration {
	took := t.since(begun)
	t.ranges.observe(took, err == nil)
	return took
}

// Read notes how a wait for the leader's word ended. That a client gave up is no failure.
func (t *Timings) Read(begun time.Time, err error) {
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		t.readsFailed.Add(1)
	}
	if t.since(begun) > slowRead {
		t.readsSlow.Add(1)
	}
}

// Sent counts messages to watchers that were sent together.
type Sent struct {
	withEvents, events, answers, progress uint64
}

// Count adds a message.
func (s *Sent) Count(r *watch.Response) {
	switch {
	case r.Batch != nil:
		s.withEvents++
		s.events += uint64(len(r.Batch.Events))
	case r.Created || r.Canceled:
		s.answers++
	default:
		s.progress++
	}
}

// Events is how many events there were in all messages.
func (s *Sent) Events() uint64 { return s.events }

// Send notes how long messages to watchers took to send, each of them as long as the others.
func (t *Timings) Send(sent *Sent, begun time.Time) {
	messages := sent.withEvents + sent.answers + sent.progress
	if messages == 0 {
		return
	}
	each := t.since(begun).Seconds() / float64(messages)
	t.watchEvents.ObserveMany(each, sent.withEvents)
	t.watchControl.ObserveMany(each, sent.answers)
	t.watchProgress.ObserveMany(each, sent.progress)
	if sent.events > 0 {
		t.watchEvent.ObserveMany(each*float64(sent.withEvents)/float64(sent.events), sent.withEvents)
	}
}

// Collect shows the timings under etcd's names.
func (t *Timings) Collect(e *metrics.Emitter) {
	for kind, took := range t.requests {
		took.collect(e, "etcd_server_request_duration_seconds",
			"How long requests took at this member, by kind: reads as a whole, writes until they were applied.", "type", kind)
	}
	t.ranges.collect(e, "etcd_server_range_duration_seconds", "How long ranges took to read from the store.")
	e.Counter("etcd_server_read_indexes_failed_total", "Reads that got no word of the leader.",
		float64(t.readsFailed.Load()))
	e.Counter("etcd_server_slow_read_indexes_total", "Reads that waited longer than 500 ms for the leader's word.",
		float64(t.readsSlow.Load()))
	e.Distribution("etcd_mvcc_hash_duration_seconds", "How long calls of Hash took.", t.Hash.took)
	e.Distribution("etcd_mvcc_hash_rev_duration_seconds", "How long calls of HashKV took.", t.HashKV.took)
	e.Distribution("etcd_disk_backend_defrag_duration_seconds", "How long calls of Defragment took.", t.Defragment.took)
	e.Gauge("etcd_disk_defrag_inflight", "1 while a call of Defragment is under way; reads and writes go on.",
		metrics.Bool(t.Defragment.running.Load() > 0))
	e.Distribution("etcd_disk_backend_snapshot_duration_seconds", "How long backups took to make and send.", t.Backup.took)
	const send = "etcd_debugging_server_watch_send_loop_"
	e.Distribution(send+"watch_stream_duration_seconds", "How long messages with events took to send.", t.watchEvents)
	e.Distribution(send+"watch_stream_duration_per_event_seconds", "The same, for each event of a message.", t.watchEvent)
	e.Distribution(send+"control_stream_duration_seconds", "How long answers to requests of watchers took to send.",
		t.watchControl)
	e.Distribution(send+"progress_duration_seconds", "How long notices of progress took to send.", t.watchProgress)
}
