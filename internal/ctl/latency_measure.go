package ctl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/ctl/command"
)

const (
	// routeKey asks a server, among a request's metadata, by which route it answers; the header of the answer tells.
	routeKey = "quorate-route"
	askRoute = "?"
	// latencyValue is what is written: as small as what such stores mostly hold.
	latencyValue = "quorate measures how long this takes"
)

// latencyRow is what was measured through one member.
type latencyRow struct {
	Name     string             `json:"name"`
	Endpoint string             `json:"endpoint"`
	ID       string             `json:"id,omitempty"`
	Role     string             `json:"role"`
	Put      *spread            `json:"put,omitempty"`
	Get      *spread            `json:"get,omitempty"`
	Routes   map[string]int     `json:"put_routes,omitempty"` // how many puts were answered by each, if the server tells
	Trips    map[string]float64 `json:"round_trips_ms,omitempty"`
	Skipped  string             `json:"skipped,omitempty"`
	Err      string             `json:"error,omitempty"`

	failed bool // the member could not be measured, and should have been
}

// spread sums up how long requests took.
type spread struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	Max   float64 `json:"max_ms"`
}

// newSpread takes percentiles by the nearest rank; nil of nothing.
func newSpread(took []time.Duration) *spread {
	if len(took) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(took))
	rank := func(share float64) float64 {
		at := int(math.Ceil(share*float64(len(sorted)))) - 1
		return float64(sorted[at].Microseconds()) / 1000
	}
	return &spread{Count: len(sorted), P50: rank(0.5), P90: rank(0.9), Max: rank(1)}
}

// measure fills a row: puts, then gets of what was put, on a connection to this member alone that is open already.
func (l *latencyCheck) measure(ctx context.Context, row *latencyRow) {
	client, err := l.Dial(ctx, []string{row.Endpoint})
	if err != nil {
		l.fail(row, "connect", err)
		return
	}
	defer client.Close()
	kv := pb.NewKVClient(client.ActiveConnection())
	key := func(i int) []byte { return fmt.Appendf(nil, "%s%s/%d", l.keys, row.Name, i) }
	get := func(ctx context.Context, i int) error {
		_, err := kv.Range(ctx, &pb.RangeRequest{Key: key(i)})
		return err
	}
	if _, err := l.timed(ctx, 1, get); err != nil {
		l.fail(row, "the first get", err)
		return
	}
	var mu sync.Mutex
	routes := map[string]int{}
	l.written = true
	puts, err := l.timed(ctx, l.count, func(ctx context.Context, i int) error {
		var header metadata.MD
		ctx = metadata.AppendToOutgoingContext(ctx, routeKey, askRoute)
		_, err := kv.Put(ctx, &pb.PutRequest{Key: key(i), Value: []byte(latencyValue)}, grpc.Header(&header))
		if told := header.Get(routeKey); err == nil && len(told) > 0 {
			mu.Lock()
			routes[told[0]]++
			mu.Unlock()
		}
		return err
	})
	row.Put, row.Routes = newSpread(puts), routes
	if err != nil {
		l.fail(row, fmt.Sprintf("put %d of %d", len(puts)+1, l.count), err)
		return
	}
	gets, err := l.timed(ctx, l.count, get)
	row.Get = newSpread(gets)
	if err != nil {
		l.fail(row, fmt.Sprintf("get %d of %d", len(gets)+1, l.count), err)
	}
}

// fail notes why a member was not measured to the end.
func (l *latencyCheck) fail(row *latencyRow, what string, err error) {
	reason := strings.TrimPrefix(command.PlainText(err), "etcdserver: ")
	if errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded {
		reason = fmt.Sprintf("no answer within %v", l.Timeout)
	}
	row.Err, row.failed = what+": "+reason, true
}

// timed makes requests, as many at a time as was asked for, and returns how long those took that were answered. The first
// that fails ends it.
func (l *latencyCheck) timed(ctx context.Context, n int, request func(context.Context, int) error) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	took := make([]time.Duration, n) // zero: not answered
	for range min(n, l.concurrency) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				bounded, release := context.WithTimeout(ctx, l.Timeout)
				began := time.Now()
				err := request(bounded, i)
				release()
				if err != nil {
					cancel(err)
					return
				}
				took[i] = max(time.Since(began), 1)
			}
		})
	}
	all.Wait()
	return slices.DeleteFunc(took, func(d time.Duration) bool { return d == 0 }), context.Cause(ctx)
}
