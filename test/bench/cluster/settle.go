package cluster

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	idleTicks   = 3 // a member that takes no more CPU in a second has nothing left to do by itself
	idleSeconds = 2
	idleLimit   = time.Minute
)

// Settle returns once no member does anything by itself, and what they wrote is on the device. Members of ours are made to
// write what they hold in memory.
func (c *Cluster) Settle(ctx context.Context) error {
	for _, m := range c.Members {
		if err := flush(ctx, m.ClientAddr); err != nil {
			return err
		}
	}
	until := time.Now().Add(idleLimit)
	for idle := 0; idle < idleSeconds; {
		if time.Now().After(until) {
			return errors.New("the members do not come to rest")
		}
		before := c.cpuTime()
		if Pause(ctx, time.Second); ctx.Err() != nil {
			return ctx.Err()
		}
		if idle++; c.cpuTime()-before > idleTicks*tick*time.Duration(len(c.Members)) {
			idle = 0
		}
	}
	syscall.Sync()
	return nil
}

// flush asks a member for the begin of a snapshot, which it takes from its files: what is in memory only is written first.
func flush(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, idleLimit)
	defer cancel()
	client, err := Connect(address)
	if err != nil {
		return err
	}
	snapshot, err := clientv3.NewMaintenance(client).Snapshot(ctx)
	if err == nil {
		_, err = io.ReadFull(snapshot, make([]byte, 1))
		err = errors.Join(err, snapshot.Close())
	}
	return errors.Join(err, client.Close())
}
