package server_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
)

// Ensure that a member observes whether it encrypts and with which key, at once after a rotation, and how much has the key once that
// was counted; and what an output of the audit is, took and lost.
func TestServer_observedKeys(t *testing.T) {
	observe := func(ctx context.Context, c *clientv3.Client) *quoratepb.Observation {
		t.Helper()
		o, err := quoratepb.NewDoctorClient(c.ActiveConnection()).Observe(ctx, &quoratepb.ObserveRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	m := newSealed(t)
	records := filepath.Join(t.TempDir(), "audit.log")
	m.with(func(ctx context.Context, c *clientv3.Client) {
		putPlanted(t, ctx, c, 0, 50)
		keys := quoratepb.NewEncryptionClient(c.ActiveConnection())
		known, err := keys.Status(ctx, &quoratepb.EncryptionStatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		o := observe(ctx, c)
		for ; !o.GetEncryption().GetCounted() || len(o.GetAudit()) == 0; o = observe(ctx, c) {
			select {
			case <-ctx.Done():
				t.Fatalf("not observed: %v, %v", o.GetEncryption(), o.GetAudit())
			case <-tick.C:
			}
		}
		key := known.GetKeys()[0]
		if e := o.GetEncryption(); !e.GetEncrypted() || e.GetProvider() != "file" || e.GetKey() != key.GetId() || e.GetKeys() != 1 ||
			e.GetCreatedMs()/1000 != key.GetCreatedSeconds() || e.GetBytes() <= 0 || e.GetFormerBytes() != 0 || e.GetPlainBytes() != 0 {
			t.Errorf("observed is %v of %v", e, known)
		}
		if s := o.GetAudit()[0]; s.GetName() != records || s.GetKind() != "file" || !s.GetRequired() || s.GetDeadlineMs() != 7000 ||
			s.GetLost() != 0 || s.GetBlocked() {
			t.Errorf("observed is %v", s)
		}
		after, err := keys.Rotate(ctx, &quoratepb.RotateKeyRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if e := observe(ctx, c).GetEncryption(); e.GetKey() != after.GetKeys()[1].GetId() || e.GetKeys() != 2 || e.GetFormerBytes() <= 0 {
			t.Errorf("after a rotation observed is %v", e)
		}
	}, m.writeKeys("keys", 'a'), "--audit-log-required="+records, "--audit-log-deadline=7s")
	newSealed(t).with(func(ctx context.Context, c *clientv3.Client) {
		if o := observe(ctx, c); o.GetEncryption() == nil || o.GetEncryption().GetEncrypted() || len(o.GetAudit()) != 0 {
			t.Errorf("observed is %v, %v", o.GetEncryption(), o.GetAudit())
		}
	})
}
