package shipper

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/seal"
	"github.com/quorate/quorate/internal/kv"
)

// lockOf returns what encrypts to the recipients of a policy.
func lockOf(p *kv.BackupPolicy) (*backup.Lock, error) {
	recipients, err := seal.ParseRecipients(strings.Fields(p.Recipients))
	if err != nil {
		return nil, fmt.Errorf("the backup cannot be encrypted here: %w", err)
	}
	return seal.NewLock(backup.Secret([]byte(p.Secret)), recipients), nil
}
