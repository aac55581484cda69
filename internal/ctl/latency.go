package ctl

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/survey"
)

// maxLatencyCount keeps a slip of the finger from filling a store.
const maxLatencyCount = 100_000

// latencyCheck is what `quorate latency` was asked to do.
type latencyCheck struct {
	*command.Connection
	count, concurrency int
	prefix             string

	keys    string // below which this run writes: no other client's keys are there
	written bool
}

func newLatency(s command.Streams) *cobra.Command {
	l := &latencyCheck{Connection: command.NewConnection(s)}
	cmd := l.AddTo(&cobra.Command{
		Use:   "latency",
		Short: "Measure puts and linearizable gets through each member",
		Long: "Measure puts and linearizable gets through each member, one member after the other, and tell by which route " +
			"the puts were\nanswered: 'leader' once the leader has said that they are committed, 'inferred' once the member " +
			"found that out by itself,\n'fast' in one round trip to the voters; '-' if the server does not tell. Where " +
			"servers tell it, the round trips between the\nmembers follow, as they measure them. The keys are deleted " +
			"afterwards.",
		Example: "  quorate latency\n  quorate latency --count 100 --endpoints 10.0.4.1:2379 -o json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return l.run(cmd.Context()) },
	})
	cmd.Flags().IntVar(&l.count, "count", 20, "how many puts, and how many gets, through each member")
	cmd.Flags().IntVar(&l.concurrency, "concurrency", 1, "how many of them at the same time")
	cmd.Flags().StringVar(&l.prefix, "prefix", "quorate-latency/", "where to write; what is there already stays")
	return cmd
}

func (l *latencyCheck) run(ctx context.Context) error {
	if l.count < 1 || l.count > maxLatencyCount {
		return command.Usagef("--count %d: choose 1 to %d", l.count, maxLatencyCount)
	}
	if l.concurrency < 1 || l.concurrency > l.count {
		return command.Usagef("--concurrency %d: choose 1 to --count, which is %d", l.concurrency, l.count)
	}
	client, err := l.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	members, err := l.survey(ctx, client)
	if err != nil {
		return l.Explain(ctx, err, client.Endpoints())
	}
	l.keys = l.prefix + rand.Text() + "/"
	rows, err := l.measureAll(ctx, members)
	if err = errors.Join(err, l.clean(ctx, client)); err != nil {
		return err
	}
	addTrips(ctx, rows)
	after, err := l.survey(ctx, client)
	if err != nil {
		return l.Explain(ctx, err, client.Endpoints())
	}
	if err := l.report(rows, leaderMoved(members, after)); err != nil {
		return err
	}
	for _, r := range rows {
		if r.failed {
			return command.ErrQuiet
		}
	}
	return nil
}

// survey asks all members who they are, by whichever endpoint answers first.
func (l *latencyCheck) survey(ctx context.Context, client *clientv3.Client) ([]survey.Member, error) {
	bounded, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	reachable, release := command.CancelIfRefused(bounded, client.Endpoints())
	defer release()
	_, seats, err := survey.Seats(reachable, client)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(seats, func(a, b survey.Seat) int { return strings.Compare(a.Name, b.Name) })
	return survey.Listed(survey.Ask(bounded, client, seats)), nil
}

// measureAll measures one member after the other. It ends early only with the context.
func (l *latencyCheck) measureAll(ctx context.Context, members []survey.Member) ([]latencyRow, error) {
	var rows []latencyRow
	for i, m := range members {
		row := latencyRow{Name: m.Name, Endpoint: m.Endpoint, Role: string(m.Role)}
		if m.ID != 0 {
			row.ID = command.HexID(m.ID)
		}
		switch m.Role {
		case survey.Down:
			row.Skipped, row.failed = "it is down: "+whyDown(ctx, l.Connection, m), true
		case survey.Seeking:
			row.Skipped, row.failed = "it knows no leader", true
		case survey.Learner:
			row.Skipped = "a learner answers no reads and writes"
		default:
			if l.Streams.Terminal && !l.JSON() {
				fmt.Fprintf(l.Streams.Err, "measuring %s, %d of %d\n", m.Name, i+1, len(members))
			}
			l.measure(ctx, &row)
		}
		if ctx.Err() != nil {
			return rows, ctx.Err()
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// clean deletes what was written, although the command may have been interrupted.
func (l *latencyCheck) clean(ctx context.Context, client *clientv3.Client) error {
	if !l.written {
		return nil
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Timeout)
	defer cancel()
	if _, err := client.Delete(bounded, l.keys, clientv3.WithPrefix()); err != nil {
		return command.Refused(fmt.Errorf("the keys could not be deleted: %s; do it with `quorate del --prefix %s`",
			strings.TrimPrefix(command.PlainText(err), "etcdserver: "), typed.Word(l.keys)))
	}
	return nil
}

// leaderMoved tells that the roles of before the measurement do not hold for all of it.
func leaderMoved(before, after []survey.Member) string {
	was, led := survey.LeaderOf(before)
	is, leads := survey.LeaderOf(after)
	switch {
	case led && !leads:
		return was.Name + " led when this began, and nobody does now"
	case leads && (!led || was.ID != is.ID):
		return "leadership moved to " + is.Name + " meanwhile: measure again"
	}
	return ""
}
