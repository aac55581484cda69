package main

import (
	"github.com/quorate/quorate/test/bench/cluster"

	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// The sizes of the attacks of `memory`. All their streams are of one host, on the first member.
const (
	attackStreams     = 3000 // watch streams that are never read
	attackStreamsConn = 100  // of them, on one connection
	attackBytes       = 1 << 20
	attackValues      = 64   // that were put before the streams begin, and that these have yet to see
	attackDeleted     = 2000 // values that are deleted at once
	attackWindow      = 65535

	attackLongKeys  = 400 // of attackLongKey bytes each
	attackLongKey   = 1_000_000
	attackLeased    = 250 // transactions, of attackTxnPuts keys of attackLeasedKey bytes each, that hang on one lease
	attackTxnPuts   = 128
	attackLeasedKey = 10_500
)

// attackLoad is one hostile client host.
type attackLoad struct {
	address string
	conns   []*grpc.ClientConn
	done    int64
	refused int64
}

// attack calls begin once, and then again each second for length. It returns how many operations succeeded, and how many
// failed.
func attack(
	ctx context.Context, c *cluster.Cluster, length time.Duration, begin, again func(ctx context.Context, a *attackLoad) error,
) (done, refused int64, err error) {
	a := &attackLoad{address: c.Members[0].ClientAddr}
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		for _, conn := range a.conns {
			err = errors.Join(err, conn.Close())
		}
	}()
	if err := begin(ctx, a); err != nil {
		return a.done, a.refused, err
	}
	end := time.After(length)
	each := time.NewTicker(time.Second)
	defer each.Stop()
	for {
		select {
		case <-end:
			return a.done, a.refused, nil
		case <-ctx.Done():
			return a.done, a.refused, ctx.Err()
		case <-each.C:
			if again != nil && again(ctx, a) != nil {
				a.refused++
			}
		}
	}
}

// dial opens a connection with small windows: what is not read stays at the server.
func (a *attackLoad) dial() (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(a.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(attackWindow), grpc.WithInitialConnWindowSize(attackWindow))
	if err == nil {
		a.conns = append(a.conns, conn)
	}
	return conn, err
}

// watch opens streams that are never read, each with one watch.
func (a *attackLoad) watch(ctx context.Context, streams int, request func(i int) *pb.WatchCreateRequest) error {
	var conn *grpc.ClientConn
	for i := range streams {
		var err error
		if i%attackStreamsConn == 0 {
			if conn, err = a.dial(); err != nil {
				return err
			}
		}
		stream, err := pb.NewWatchClient(conn).Watch(ctx)
		if err == nil {
			create := &pb.WatchRequest_CreateRequest{CreateRequest: request(i)}
			err = stream.Send(&pb.WatchRequest{RequestUnion: create})
		}
		if err != nil {
			a.refused++
			continue
		}
		a.done++
	}
	return nil
}

// put puts values of attackBytes.
func (a *attackLoad) put(ctx context.Context, keys int, lease int64) error {
	conn, err := a.dial()
	if err != nil {
		return err
	}
	value := []byte(strings.Repeat("a", attackBytes))
	for i := range keys {
		put := &pb.PutRequest{Key: fmt.Appendf(nil, "k%04d", i), Value: value, Lease: lease}
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := pb.NewKVClient(conn).Put(limited, put)
		cancel()
		if err != nil {
			return err
		}
		a.done++
	}
	return nil
}

// unreadBehind opens streams that begin before large values, and reads none of them.
func unreadBehind(ctx context.Context, a *attackLoad) error {
	if err := a.put(ctx, attackValues, 0); err != nil {
		return err
	}
	return a.watch(ctx, attackStreams, func(int) *pb.WatchCreateRequest {
		return &pb.WatchCreateRequest{Key: []byte("k"), RangeEnd: []byte("l"), StartRevision: 2, PrevKv: true}
	})
}

// putOne puts one value.
func putOne(ctx context.Context, a *attackLoad) error { return a.put(ctx, 1, 0) }

// unreadRanges opens streams that watch different ranges, all with the key that is put later, and reads none of them.
func unreadRanges(ctx context.Context, a *attackLoad) error {
	return a.watch(ctx, attackStreams, func(i int) *pb.WatchCreateRequest {
		return &pb.WatchCreateRequest{Key: []byte("k"), RangeEnd: fmt.Appendf(nil, "l%d", i), PrevKv: true}
	})
}

// deleteAll deletes very many large values at once, which one watch wants to see as they were.
func deleteAll(ctx context.Context, a *attackLoad) error {
	if err := a.put(ctx, attackDeleted, 0); err != nil {
		return err
	}
	if err := a.watch(ctx, 1, everything); err != nil {
		return err
	}
	_, err := pb.NewKVClient(a.conns[0]).DeleteRange(ctx, &pb.DeleteRangeRequest{Key: []byte("k"), RangeEnd: []byte("l")})
	return err
}

// grant makes a lease on a connection of its own.
func (a *attackLoad) grant(ctx context.Context, lease int64) (*grpc.ClientConn, error) {
	conn, err := a.dial()
	if err != nil {
		return nil, err
	}
	_, err = pb.NewLeaseClient(conn).LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: lease, TTL: 3600})
	return conn, err
}

// endLease is deleteAll by the end of a lease.
func endLease(ctx context.Context, a *attackLoad) error {
	const lease = 7
	conn, err := a.grant(ctx, lease)
	if err != nil {
		return err
	}
	if err := a.put(ctx, attackDeleted, lease); err != nil {
		return err
	}
	if err := a.watch(ctx, 1, everything); err != nil {
		return err
	}
	_, err = pb.NewLeaseClient(conn).LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: lease})
	return err
}

// longKeys puts keys of a MB. Refused calls are counted.
func longKeys(ctx context.Context, a *attackLoad) error {
	conn, err := a.dial()
	if err != nil {
		return err
	}
	for range attackLongKeys {
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := pb.NewKVClient(conn).Put(limited, &pb.PutRequest{Key: attackKey(attackLongKey)})
		cancel()
		a.noteAttempt(err)
	}
	return ctx.Err()
}

// attackKey returns a key that does not compress.
func attackKey(length int) []byte {
	key := make([]byte, length)
	_, _ = rand.Read(key) // it never fails
	return key
}

func (a *attackLoad) noteAttempt(err error) {
	if err != nil {
		a.refused++
		return
	}
	a.done++
}

// longLease hangs very many long keys on one lease, and revokes it. It may take minutes.
func longLease(ctx context.Context, a *attackLoad) error {
	const lease = 7
	conn, err := a.grant(ctx, lease)
	if err != nil {
		return err
	}
	for range attackLeased {
		txn := &pb.TxnRequest{}
		for range attackTxnPuts {
			put := &pb.PutRequest{Key: attackKey(attackLeasedKey), Lease: lease}
			txn.Success = append(txn.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}})
		}
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := pb.NewKVClient(conn).Txn(limited, txn)
		cancel()
		a.noteAttempt(err)
	}
	_, err = pb.NewLeaseClient(conn).LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: lease})
	a.noteAttempt(err) // it may time out: the leader ends the rest
	return ctx.Err()
}

// everything asks for all events from now on, with previous pairs.
func everything(int) *pb.WatchCreateRequest {
	return &pb.WatchCreateRequest{Key: []byte("k"), RangeEnd: []byte("l"), PrevKv: true}
}
