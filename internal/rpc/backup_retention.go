package rpc

import (
	"fmt"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/kv"
)

// keepOf is the rule that a request asks for, where the cluster has one already.
func keepOf(has *kv.BackupPolicy, r *quoratepb.StartBackupRequest) (string, error) {
	if r.GetKeep() == "" {
		return has.Keep, nil
	}
	if len(r.GetKeep()) > kv.MaxBackupKeepBytes {
		return "", fmt.Errorf("the rule of what is kept has %d bytes, and at most %d are taken", len(r.GetKeep()),
			kv.MaxBackupKeepBytes)
	}
	rule, err := keep.Parse(r.GetKeep())
	if err != nil {
		return "", fmt.Errorf("the rule of what is kept: %w", err)
	}
	if rule.Window == 0 {
		return "", nil // all
	}
	return rule.String(), nil
}

func retained(r *kv.BackupRetention) *quoratepb.BackupRetained {
	if r.At == 0 && r.Why == "" {
		return nil
	}
	return &quoratepb.BackupRetained{TimeMs: r.At, FromMs: r.From, Bases: r.Bases, Removed: r.Removed, Bytes: r.Bytes,
		Why: r.Why}
}
