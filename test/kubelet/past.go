package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A past is what a client has left in a cluster that is taken over: a lease with a key, and a key with an older value.
type past struct {
	revision int64
	lease    clientv3.LeaseID
}

const (
	leasedKey = "/past/leased"
	olderKey  = "/past/older"
)

func leavePast(ctx context.Context, client *clientv3.Client) (past, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	lease, err := client.Grant(ctx, 3600)
	if err != nil {
		return past{}, err
	}
	if _, err := client.Put(ctx, leasedKey, "x", clientv3.WithLease(lease.ID)); err != nil {
		return past{}, err
	}
	first, err := client.Put(ctx, olderKey, "first")
	if err != nil {
		return past{}, err
	}
	_, err = client.Put(ctx, olderKey, "second")
	return past{first.Header.Revision, lease.ID}, err
}

func (p past) check(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	left, err := client.TimeToLive(ctx, p.lease, clientv3.WithAttachedKeys())
	if err != nil {
		return err
	}
	if left.TTL <= 0 || len(left.Keys) != 1 || string(left.Keys[0]) != leasedKey {
		return fmt.Errorf("the lease has %d s and the keys %q", left.TTL, left.Keys)
	}
	old, err := client.Get(ctx, olderKey, clientv3.WithRev(p.revision))
	if err != nil {
		return err
	}
	if len(old.Kvs) != 1 || string(old.Kvs[0].Value) != "first" {
		return fmt.Errorf("at revision %d the key is %v", p.revision, old.Kvs)
	}
	return nil
}

// sightings are what one watch of all writes has told.
type sightings struct {
	mu    sync.Mutex
	times map[string]int
	ended error
}

// watchWrites watches from the first revision on. The watch is never made again by us.
func watchWrites(ctx context.Context, client *clientv3.Client) *sightings {
	s := &sightings{times: map[string]int{}}
	events := client.Watch(ctx, writePath, clientv3.WithPrefix(), clientv3.WithRev(1))
	go func() {
		for response := range events {
			s.mu.Lock()
			for _, e := range response.Events {
				s.times[string(e.Kv.Key)]++
			}
			if err := response.Err(); err != nil {
				s.ended = err
			}
			s.mu.Unlock()
		}
	}()
	return s
}

// all waits until each of the keys was seen once, and none twice.
func (s *sightings) all(ctx context.Context, keys map[string]int64) error {
	return until(ctx, time.Minute, "the watch has told all writes", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		missing := 0
		for key := range keys {
			if s.times[key] == 0 {
				missing++
			}
		}
		for key, times := range s.times {
			if times > 1 {
				return fmt.Errorf("%s was told %d times", key, times)
			}
		}
		if missing > 0 {
			return errors.Join(fmt.Errorf("%d are missing", missing), s.ended)
		}
		return nil
	})
}
