package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const RetryEvery = 50 * time.Millisecond

// Promoted adds a learner, starts it and makes it a voter as soon as the cluster lets it be one.
func (c *Cluster) Promoted(ctx context.Context) error {
	m, err := c.Admit(ctx, c.Control.MemberAddAsLearner)
	if err != nil {
		return err
	}
	return again(ctx, "promote", func() error {
		_, err := c.Control.MemberPromote(ctx, m.ID)
		return err
	})
}

// Admit adds a member, by one call or the other, and starts its process.
func (c *Cluster) Admit(
	ctx context.Context, add func(context.Context, []string) (*clientv3.MemberAddResponse, error),
) (*Member, error) {
	m, err := c.Newcomer()
	if err != nil {
		return nil, err
	}
	err = again(ctx, "add", func() error {
		answer, err := add(ctx, []string{"http://" + m.PeerAddr})
		if err == nil {
			m.ID = answer.Member.ID
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	c.Members = append(c.Members, m)
	return m, c.Launch(m)
}

// Newcomer is a member that is not one yet, and not among Members: once it was added, Launch starts it.
func (c *Cluster) Newcomer() (*Member, error) {
	if c.Links != nil {
		return nil, errors.New("a newcomer has no links to the others")
	}
	addresses, err := freeAddresses(2)
	if err != nil {
		return nil, err
	}
	c.named++
	return &Member{
		Name: fmt.Sprintf("m%d", c.named), ClientAddr: addresses[0], PeerAddr: addresses[1], met: addresses[1],
		joins: true,
	}, nil
}

// PeerURL is where other members meet it.
func (m *Member) PeerURL() string { return "http://" + m.met }

// Dismiss removes a member. Its process ends itself, or else with the cluster.
func (c *Cluster) Dismiss(ctx context.Context, m *Member) error {
	return again(ctx, "remove", func() error {
		_, err := c.Control.MemberRemove(ctx, m.ID)
		return err
	})
}

// again repeats what a cluster refuses while it is not ready for it: strict checks want all members connected for a
// while, and a learner has to catch up first.
func again(ctx context.Context, what string, do func() error) error {
	for {
		err := do()
		if err == nil {
			return nil
		}
		Pause(ctx, RetryEvery)
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}
