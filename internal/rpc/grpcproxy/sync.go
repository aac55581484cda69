package grpcproxy

import (
	"context"
	"log/slog"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/broadcast"
)

// syncTimeout is how long the members are waited for when they are asked who they are.
const syncTimeout = 5 * time.Second

// syncEndpoints asks the members who they are, each interval, and connects to those.
func syncEndpoints(ctx context.Context, client *clientv3.Client, interval time.Duration, logger *slog.Logger) {
	before := slices.Sorted(slices.Values(client.Endpoints()))
	for broadcast.Pause(ctx, interval) == nil {
		bounded, cancel := context.WithTimeout(ctx, syncTimeout)
		answer, err := client.MemberList(bounded)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			logger.Warn("could not ask the members who they are: the endpoints stay", "err", err)
			continue
		}
		var now []string
		for _, m := range answer.Members {
			if m.Name != "" && !m.IsLearner { // it has started, and serves all calls
				now = append(now, m.ClientURLs...)
			}
		}
		slices.Sort(now)
		if len(now) == 0 || slices.Equal(now, before) {
			continue
		}
		logger.Info("the endpoints have changed", "from", before, "to", now)
		client.SetEndpoints(now...)
		before = now
	}
}
