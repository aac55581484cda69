package rpc_test

import (
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Ensure that the tally has how a sample of writes was spent, on the road without goroutines and on the patient one, that large writes are
// all in it, and that serializable ranges are counted apart.
func TestServices_Tally_traffic(t *testing.T) {
	s := serveMember(t, nil)
	c, ctx := s.client(t), waitContext(t)
	large := strings.Repeat("v", 70<<10)
	for i := range 8 {
		if _, err := c.Put(ctx, fmt.Sprint("k", i), large); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Put(ctx, fmt.Sprint("k", i), large, clientv3.WithPrevKV()); err != nil { // in a goroutine
			t.Fatal(err)
		}
	}
	for range 3 {
		if _, err := c.Get(ctx, "k1", clientv3.WithSerializable()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := c.Get(ctx, "k1"); err != nil {
			t.Fatal(err)
		}
	}
	got := s.services.Tally()
	if got.Split.Writes != 16 || got.Split.Queue+got.Split.Network+got.Split.Sync+got.Split.Apply <= 0 || got.Writes != 16 {
		t.Errorf("the split is %+v, of %d writes", got.Split, got.Writes)
	}
	if sum := got.Split.Queue + got.Split.Network + got.Split.Sync + got.Split.Apply; sum > 2*got.WritesTook {
		t.Errorf("the parts took %v, all %v", sum, got.WritesTook)
	}
	puts, _, _ := got.PutsTook.Read()
	reads, _, _ := got.ReadsTook.Read()
	if puts != 16 || reads != 5 || got.Serializable != 3 {
		t.Errorf("%d puts, %d reads, %d of them serializable", puts, reads, got.Serializable)
	}
}
