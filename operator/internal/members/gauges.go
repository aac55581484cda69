package members

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/quorate/quorate/operator/internal/objects"
)

// mostMetrics is how many bytes of metrics are read, a line at a time.
const mostMetrics = 4 << 20

// Gauge is what a member tells without a login, at its port of metrics: where users are on and no leader is there, nobody
// can log in.
type Gauge struct {
	Member   string // that has the seat
	ID       string // that the process says it is, in hexadecimal
	Epoch    uint64 // of a build that does not tell it that of the claim
	Term     uint64 // of the log's last entry; 0: a build that does not tell it
	Index    int64  // of that entry; of a build that does not tell it the last one that was applied
	Revision int64
}

// Gauges asks all seats, and returns the answers of those that told all.
func (g *Group) Gauges(ctx context.Context) []Gauge {
	ctx, done := g.asking(ctx)
	defer done()
	got := make([]*Gauge, len(g.seats))
	var all sync.WaitGroup
	for i := range g.seats {
		all.Go(func() { got[i] = gauge(ctx, &g.seats[i]) })
	}
	all.Wait()
	var out []Gauge
	for _, one := range got {
		if one != nil {
			out = append(out, *one)
		}
	}
	return out
}

func gauge(ctx context.Context, seat *Seat) *Gauge {
	url := fmt.Sprintf("http://%s/metrics", net.JoinHostPort(seat.Address, strconv.Itoa(objects.PortMetrics)))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil
	}
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		MaxResponseHeaderBytes: mostHeaders}, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}
	answer, err := direct.Do(request)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	return gaugeOf(seat, io.LimitReader(answer.Body, mostMetrics))
}

// gaugeOf reads the metrics; nil: one is missing that every build has.
func gaugeOf(seat *Seat, text io.Reader) *Gauge {
	one, found, applied := &Gauge{Member: seat.Member, Epoch: seat.Epoch.Number}, 0, int64(0)
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		id, isID := strings.CutPrefix(name, `etcd_server_id{server_id="`)
		number, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil || !(number >= 0 && number <= 1<<53): // not a number is neither
		case isID:
			one.ID = strings.TrimSuffix(id, `"}`)
			found |= 1
		case name == "etcd_server_proposals_applied_total":
			applied = int64(number)
			found |= 2
		case name == "quorate_raft_last_index":
			one.Index = int64(number)
		case name == "quorate_raft_last_term":
			one.Term = uint64(number)
		case name == "quorate_epoch":
			one.Epoch = uint64(number)
		case name == "etcd_debugging_mvcc_current_revision":
			one.Revision = int64(number)
			found |= 4
		}
	}
	if found != 7 {
		return nil
	}
	one.Index = max(one.Index, applied)
	return one
}
