package server

import (
	"fmt"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/census"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/limits/answers"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/member/upkeep"
)

// budgets are what the parts of this member may have in memory.
type budgets struct {
	memory.Shares
	answers *answers.Budget // memory for answers to clients
	// The memory that clients hold by being there: all of it, streams that renew leases when that has no room, and connections
	// to metrics URLs.
	held, renewals, metrics *admission.Ledger
	watchedRevision         int // most bytes of a revision with its previous pairs
}

// newBudgets fits the shares to flags that set one of them: what was given by the operator holds, unless --memory was, too, and
// leaves less.
func newBudgets(cfg *config.Config, shares memory.Shares) (budgets, error) {
	if shares == (memory.Shares{}) {
		shares = memory.Divide(memory.DefaultMost)
	}
	for _, row := range []struct {
		flag  string
		value int64
		share *int64
	}{
		{"snapshot-log-bytes", int64(cfg.Storage.SnapshotLogBytes), &shares.Log.Snapshot},
		{"max-response-bytes", cfg.Limits.MaxResponseBytes, &shares.Answer},
		{"response-memory-bytes", cfg.Limits.ResponseMemoryBytes, &shares.Answers},
	} {
		switch {
		case !cfg.Explicit(row.flag):
			*row.share = min(*row.share, row.value)
		case row.value > *row.share && cfg.Explicit("memory"):
			return budgets{}, fmt.Errorf("--%s %d is more than --memory %v leaves for that, %d: lower it, or raise --memory",
				row.flag, row.value, cfg.Limits.Memory, *row.share)
		default:
			*row.share = row.value
		}
	}
	shares.Answer = min(shares.Answer, shares.Answers)
	shares.Proposals = max(shares.Proposals, int64(cfg.Limits.MaxRequestBytes)) // one must fit
	shares.Peers = max(shares.Peers, requestsOfPeers*int64(cfg.Limits.MaxRequestBytes))
	shares.Shipped.Kept = max(shares.Shipped.Kept, copiesShipped*int64(cfg.Limits.MaxRequestBytes))
	shares.Shipped.Waiting = max(shares.Shipped.Waiting, copiesShipped*int64(cfg.Limits.MaxRequestBytes))
	shares.Clients.Total = max(shares.Clients.Total, copiesOfRequest*int64(cfg.Limits.MaxRequestBytes))
	return budgets{
		held: admission.NewLedger(shares.Clients.Total), renewals: admission.NewLedger(shares.Clients.Renewals),
		metrics: admission.NewLedger(shares.Clients.Metrics),
		Shares:  shares, answers: answers.New(shares.Answers, shares.Answer),
		watchedRevision: max(int(shares.Watch.Host), requestsInRevision*int(cfg.Limits.MaxRequestBytes)),
	}, nil
}

// copiesOfRequest is how much all clients may hold at least, in requests of the largest size: one client has half of it, and a
// request by JSON is longer than one by gRPC, and read twice.
const copiesOfRequest = 8

// copiesShipped is how much a continuous backup may hold at least, in requests of the largest size: else the entry of one would
// be left out of it.
const copiesShipped = 2

// requestsOfPeers is how much those may hold at least on the peer port who are not known as members, in requests of the largest
// size: a member that catches up may not know its leader yet.
const requestsOfPeers = 2

// requestsInRevision is how many times the largest request a revision may have, with its previous pairs, for watchers that
// want them: a put and what it replaces are two.
const requestsInRevision = 8

// machineOptions is how the state machine is opened.
func (b *budgets) machineOptions() apply.Options {
	return apply.Options{
		MostLeases: b.Starts(),
		EventBytes: int(b.Watch.Total), // no watcher may have more than may wait for all
		Store: mvcc.Options{CacheBytes: int(b.Versions),
			Census: census.Options{LogBytes: int(b.Counts), IntervalBytes: int(b.Counts / 2)}},
		Hub: watch.NewHub(watch.Options{StreamBytes: int(b.Watch.Stream), ClientBytes: b.Watch.Host, TotalBytes: b.Watch.Total,
			WatcherBytes: b.Watch.Watchers, HistoryBytes: int(b.Watch.History), RevisionBytes: b.watchedRevision}),
	}
}

// logRetention is how much of the log is kept.
func (b *budgets) logRetention() upkeep.Retention {
	r := upkeep.DefaultRetention()
	r.CatchUpBytes, r.FlushBytes = int(b.Log.CatchUp), int(b.Log.Unflushed)
	return r
}
