package k8s

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const casTries = 5 // of one mutation, on an object about which an earlier outcome is unknown

// change is one mutation on its way.
type change struct {
	*object
	creates, deletes bool
	value            []byte
}

// prepare builds the value, which the schedule's goroutine does because the material is its own.
func (s *Session) prepare(m mutation) *change {
	o := s.objects.of(m)
	if o == nil {
		return nil
	}
	c := &change{object: o, creates: m.class == Event || m.class == Pod && m.step == created,
		deletes: m.class == Pod && m.step == deleted}
	switch {
	case c.deletes:
	case m.class == Lease:
		c.value = s.material.object(o.number, leaseBytes)
	case m.class == Event:
		c.value = s.material.object(o.number, eventBytes)
	default:
		c.value = s.material.object(o.number, s.options.PodBytes)
	}
	return c
}

// apply does a mutation through an API server.
func (s *Session) apply(ctx context.Context, server *apiServer, c *change) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	lease := clientv3.LeaseID(0)
	if c.resource == events {
		var err error
		if lease, err = server.lease.get(ctx, server.clients[events], s.options.EventTTL, s.ledgers[events]); err != nil {
			return fmt.Errorf("lease: %w", err)
		}
	}
	client := server.clients[c.resource]
	for range casTries {
		if c.unsure {
			answer, err := client.Get(ctx, c.key)
			if err != nil {
				return err
			}
			s.learn(c.object, answer.Kvs)
		}
		if c.revision == 0 && !c.creates {
			return nil // its creation failed, which was counted
		}
		if c.revision != 0 && c.creates {
			return nil // it was created, after all
		}
		if done, err := s.compareAndSet(ctx, client, c, lease); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("compare-and-set failed %d times", casTries)
}

// compareAndSet sends the transaction of k8s.io/apiserver, and reports whether it took place.
func (s *Session) compareAndSet(
	ctx context.Context, client *clientv3.Client, c *change, lease clientv3.LeaseID,
) (done bool, err error) {
	then := clientv3.OpDelete(c.key)
	if !c.deletes {
		stamp(c.value, time.Now())
		then = clientv3.OpPut(c.key, string(c.value), clientv3.WithLease(lease))
	}
	w := written{key: c.key, deleted: c.deletes}
	if !c.deletes {
		w.sum = sum(c.value)
	}
	answer, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(c.key), "=", c.revision)).
		Then(then).Else(clientv3.OpGet(c.key)).Commit()
	if err != nil {
		s.ledgers[c.resource].doubt(w)
		c.unsure = true
		return false, err
	}
	if !answer.Succeeded {
		kvs := answer.Responses[0].GetResponseRange().Kvs
		if !c.unsure {
			s.violations.addf("%s: compare with revision %d failed at %d, and nobody else writes it; it has %v", c.key,
				c.revision, answer.Header.Revision, revisions(kvs))
		}
		s.learn(c.object, kvs)
		c.unsure = true
		return false, nil
	}
	w.revision = answer.Header.Revision
	s.ledgers[c.resource].ack(w)
	s.seeRevision(w.revision)
	c.revision, c.unsure = w.revision, false
	if c.deletes {
		c.revision = 0
	}
	return true, nil
}

// learn takes what the store has of an object that no other client writes: a request of unknown outcome did that.
func (s *Session) learn(o *object, kvs []*mvccpb.KeyValue) {
	o.revision = 0
	if len(kvs) == 0 {
		return
	}
	o.revision = kvs[0].ModRevision
	if s.first[o.resource][o.key].modified != o.revision {
		s.ledgers[o.resource].ack(written{revision: o.revision, key: o.key, sum: sum(kvs[0].Value)})
	}
}

func revisions(kvs []*mvccpb.KeyValue) (all []int64) {
	for _, kv := range kvs {
		all = append(all, kv.ModRevision)
	}
	return all
}

// seeRevision notes that the store has reached a revision.
func (s *Session) seeRevision(revision int64) {
	for {
		old := s.latest.Load()
		if revision <= old || s.latest.CompareAndSwap(old, revision) {
			return
		}
	}
}
