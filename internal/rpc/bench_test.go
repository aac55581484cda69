package rpc_test

import (
	"bytes"
	"context"
	"fmt"
	"syscall"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// BenchmarkServer_Unary measures the cost of a unary call, client included, with a state machine and no log.
func BenchmarkServer_Unary(b *testing.B) {
	s := serve(b, newMachineBackend(b), nil)
	kvc := pb.NewKVClient(s.conn(b))
	key, value := []byte("bench/key"), bytes.Repeat([]byte("v"), 256)
	if _, err := kvc.Put(context.Background(), &pb.PutRequest{Key: key, Value: value}); err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		put := &pb.PutRequest{Key: fmt.Appendf(nil, "many/%04d", i), Value: value}
		if _, err := kvc.Put(context.Background(), put); err != nil {
			b.Fatal(err)
		}
	}
	run := func(name string, call func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			defer reportCPU(b)()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if err := call(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
	ctx := context.Background()
	run("put", func() error {
		_, err := kvc.Put(ctx, &pb.PutRequest{Key: key, Value: value})
		return err
	})
	run("range", func() error {
		_, err := kvc.Range(ctx, &pb.RangeRequest{Key: key})
		return err
	})
	run("range1000", func() error {
		_, err := kvc.Range(ctx, &pb.RangeRequest{Key: []byte("many/"), RangeEnd: []byte("many0")})
		return err
	})
	run("txn", func() error {
		_, err := kvc.Txn(ctx, &pb.TxnRequest{
			Compare: []*pb.Compare{{Key: key, Target: pb.Compare_VERSION, Result: pb.Compare_GREATER}},
			Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{
				RequestPut: &pb.PutRequest{Key: key, Value: value}}}},
		})
		return err
	})
}

// reportCPU adds the processor time per operation, which a busy machine disturbs less than the time that passed.
func reportCPU(b *testing.B) (stop func()) {
	var begun syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &begun); err != nil {
		b.Fatal(err)
	}
	return func() {
		var ended syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ended); err != nil {
			b.Fatal(err)
		}
		spent := ended.Utime.Nano() + ended.Stime.Nano() - begun.Utime.Nano() - begun.Stime.Nano()
		b.ReportMetric(float64(spent)/float64(b.N)/1e3, "cpu-us/op")
	}
}
