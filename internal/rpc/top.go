package rpc

import (
	"context"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/heavy"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/rpc/top"
)

// topService is the native Top service: which prefixes and clients this member works for.
//
// Invariants:
//  1. Only root asks while authentication is enabled: the gate asks.
//  2. An answer has at most top.MaxCounters rows in each of its rankings, and takes no longer for more keys; with more
//     streams of watches it does, in short holds of their lock.
type topService struct {
	quoratepb.UnsafeTopServer
	*shared

	mu       sync.Mutex
	answers  map[asked]made // as many as there are windows and weights
	watchers watchersSeen
}

// asked is a request.
type asked struct {
	window time.Duration
	by     int
}

// made is the answer to a request. It is not changed any more.
type made struct {
	at     time.Time
	answer *quoratepb.TopAnswer
}

// answerPause is for how long an answer holds for others who ask: the calls that are counted meanwhile wait while one is made.
const answerPause = 500 * time.Millisecond

// Get tells what was counted, here or at all members.
func (t *topService) Get(ctx context.Context, r *quoratepb.TopRequest) (*quoratepb.TopAnswer, error) {
	switch {
	case !r.GetAllMembers():
		return t.here(r)
	case t.options.CollectTop == nil:
		return nil, errAsksNone
	}
	if _, err := t.here(r); err != nil {
		return nil, err // also of what the others would refuse
	}
	all, err := t.options.CollectTop(ctx, r)
	if err != nil {
		return nil, status.FromContextError(err).Err()
	}
	return all, nil
}

// here tells what was counted here.
func (t *topService) here(r *quoratepb.TopRequest) (*quoratepb.TopAnswer, error) {
	window, windowKnown := windows[r.GetWindow()]
	by, weightKnown := weights[r.GetBy()]
	if !windowKnown || !weightKnown {
		return nil, status.Errorf(codes.InvalidArgument, "quorate: this member has no window %d, or no weight %d: ask with "+
			"the build that it runs", r.GetWindow(), r.GetBy())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now, request := t.options.Clock.Now(), asked{window, by}
	if last, found := t.answers[request]; found && now.Sub(last.at) < answerPause {
		return last.answer, nil
	}
	answer := t.answer(now, window, by)
	t.answers[request] = made{now, answer}
	return answer, nil
}

func (t *topService) answer(now time.Time, window time.Duration, by int) *quoratepb.TopAnswer {
	report := t.top.Report(now, window, by)
	answer := &quoratepb.TopAnswer{ClusterId: t.cluster, MemberId: t.self, CoversMs: report.Covers.Milliseconds(), OneOf: oneOf,
		Prefixes: rankingOf(&report.Prefixes, prefixRow), Clients: rankingOf(&report.Clients, clientRow)}
	t.watchers.into(answer, now, t.options.Member.Hub())
	return answer
}

var windows = map[quoratepb.TopWindow]time.Duration{
	quoratepb.TopWindow_TOP_WINDOW_SHORT: top.Short, quoratepb.TopWindow_TOP_WINDOW_LONG: top.Long,
}

var weights = map[quoratepb.TopWeight]int{
	quoratepb.TopWeight_TOP_WEIGHT_OPERATIONS: top.Operations, quoratepb.TopWeight_TOP_WEIGHT_BYTES: top.Bytes,
	quoratepb.TopWeight_TOP_WEIGHT_PROCESSOR: top.Processor,
}

func rankingOf(r *top.Ranking, row func(key string) *quoratepb.TopRow) *quoratepb.TopRanking {
	out := &quoratepb.TopRanking{Total: countsOf(r.Total), Floor: r.Floor}
	for _, item := range r.Items {
		one := row(item.Key)
		one.Counts, one.Most = countsOf(item.Tally), item.Most
		out.Rows = append(out.Rows, one)
	}
	return out
}

func countsOf(w heavy.Weights) *quoratepb.TopCounts {
	return &quoratepb.TopCounts{Operations: w[top.Operations], Bytes: w[top.Bytes], ProcessorNs: w[top.Processor]}
}

func prefixRow(key string) *quoratepb.TopRow {
	op, prefix := top.Prefixed(key)
	return &quoratepb.TopRow{Prefix: []byte(prefix), Operation: op.String()}
}

// clientRow names a client. A name that was cut may end within a letter.
func clientRow(key string) *quoratepb.TopRow {
	c := top.Clientele(key)
	return &quoratepb.TopRow{User: strings.ToValidUTF8(c.User, "?"), Host: strings.ToValidUTF8(c.Host, "?")}
}

const (
	// watchersVisited is how many watchers are visited for an answer; of more, so many are a sample.
	watchersVisited = 16 << 10
	// watchersPause is for how long the answer holds for others who ask.
	watchersPause = 2 * time.Second
)

// watchersSeen counts watchers, at most once in watchersPause, however many ask.
type watchersSeen struct {
	at               time.Time
	each             int
	watched, watches *quoratepb.TopRanking // not changed any more
}

// into puts the watchers of now, or of a moment ago, into an answer.
func (w *watchersSeen) into(answer *quoratepb.TopAnswer, now time.Time, hub *watch.Hub) {
	if w.watched == nil || now.Sub(w.at) >= watchersPause {
		w.count(hub)
		w.at = now
	}
	answer.Watched, answer.Watching, answer.OneWatcherOf = w.watched, w.watches, uint32(w.each)
}

// count counts the watchers of a hub. They are counted as operations.
func (w *watchersSeen) count(hub *watch.Hub) {
	prefixes, clients := heavy.New(top.MaxCounters, top.Operations), heavy.New(top.MaxCounters, top.Operations)
	one := heavy.Weights{top.Operations: 1}
	var key []byte
	w.each = hub.Sample(watchersVisited, func(s watch.Sampled) {
		key = append(key[:0], s.Key[:min(len(s.Key), top.MaxPrefix)]...)
		prefixes.Add(top.Prefix(key), one)
		key = top.AppendClient(key[:0], s.User, s.Client)
		clients.Add(key, one)
	})
	w.watched = w.ranking(prefixes, func(key string) *quoratepb.TopRow { return &quoratepb.TopRow{Prefix: []byte(key)} })
	w.watches = w.ranking(clients, clientRow)
}

func (w *watchersSeen) ranking(s *heavy.Sketch, row func(key string) *quoratepb.TopRow) *quoratepb.TopRanking {
	items, floor := s.Heaviest(top.MaxCounters)
	each := uint64(w.each)
	out := &quoratepb.TopRanking{Floor: floor * each, Total: &quoratepb.TopCounts{Watchers: s.Total()[top.Operations] * each}}
	for _, item := range items {
		one := row(item.Key)
		one.Counts, one.Most = &quoratepb.TopCounts{Watchers: item.Tally[top.Operations] * each}, item.Most*each
		out.Rows = append(out.Rows, one)
	}
	return out
}
