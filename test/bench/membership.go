package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	faultWriters  = 16 // closed loops beside the probes
	retryEvery    = 50 * time.Millisecond
	changeTimeout = time.Minute
)

// disturbed is the episode of one membership change under load. Errors count the probes and the writes of the load.
func disturbed(name string, change func(context.Context, *cluster) error) episode {
	return func(ctx context.Context, p *plan, s server) (_ []figures, err error) {
		c, err := filledCluster(ctx, p, s)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, c.remove()) }()
		var f figures
		failed, err := c.underLoad(ctx, func() (err error) {
			f, err = c.probe(ctx, name, func(ctx context.Context) error {
				limited, cancel := context.WithTimeout(ctx, changeTimeout)
				defer cancel()
				return change(limited, c)
			})
			return err
		})
		f.set(failures, f.values[failures]+float64(failed))
		return []figures{f}, err
	}
}

// underLoad does something while writers load the cluster, and returns how many of their writes failed.
func (c *cluster) underLoad(ctx context.Context, do func() error) (failed int, err error) {
	clients, err := c.connectAll(faultWriters)
	workers := make([]*worker, len(clients))
	for i, client := range clients {
		workers[i] = &worker{number: i, client: client, keys: newChooser(uint64(i))}
	}
	defer func() { _ = closeWorkers(workers) }() // says only that one was cut off
	if err != nil {
		return 0, err
	}
	var phase atomic.Int32
	phase.Store(measuring)
	wait := startLoop(ctx, workers, put, &phase)
	err = do()
	phase.Store(ending)
	wait()
	for _, w := range workers {
		failed += w.errors
	}
	return failed, err
}

// addVoter adds a voter at once, as its documentation tells an etcd operator not to, and starts it.
func addVoter(ctx context.Context, c *cluster) error {
	m, err := c.admit(ctx, c.control.MemberAdd)
	if err != nil {
		return err
	}
	_, err = c.awaitReady(ctx, m)
	return err
}

func removeLeader(ctx context.Context, c *cluster) error {
	leader, err := c.leader(ctx)
	if err != nil {
		return err
	}
	return c.dismiss(ctx, leader)
}

func replaceLeader(ctx context.Context, c *cluster) error {
	if err := c.promoted(ctx); err != nil {
		return err
	}
	return removeLeader(ctx, c)
}

func replaceFollower(ctx context.Context, c *cluster) error {
	leader, err := c.leader(ctx)
	if err != nil {
		return err
	}
	follower := c.members[0]
	if follower == leader {
		follower = c.members[1]
	}
	if err := c.promoted(ctx); err != nil {
		return err
	}
	return c.dismiss(ctx, follower)
}

// promoted adds a learner, starts it and makes it a voter as soon as the cluster lets it be one.
func (c *cluster) promoted(ctx context.Context) error {
	m, err := c.admit(ctx, c.control.MemberAddAsLearner)
	if err != nil {
		return err
	}
	return again(ctx, "promote", func() error {
		_, err := c.control.MemberPromote(ctx, m.id)
		return err
	})
}

// admit adds a member, by one call or the other, and starts its process.
func (c *cluster) admit(
	ctx context.Context, add func(context.Context, []string) (*clientv3.MemberAddResponse, error),
) (*member, error) {
	addresses, err := freeAddresses(2)
	if err != nil {
		return nil, err
	}
	m := &member{
		name: fmt.Sprintf("m%d", len(c.members)+1), clientAddr: addresses[0], peerAddr: addresses[1], met: addresses[1],
		joins: true,
	}
	err = again(ctx, "add", func() error {
		answer, err := add(ctx, []string{"http://" + m.peerAddr})
		if err == nil {
			m.id = answer.Member.ID
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	c.members = append(c.members, m)
	return m, c.launch(m)
}

// dismiss removes a member. Its process ends itself, or else with the cluster.
func (c *cluster) dismiss(ctx context.Context, m *member) error {
	return again(ctx, "remove", func() error {
		_, err := c.control.MemberRemove(ctx, m.id)
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
		pause(ctx, retryEvery)
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}
