package rpc

import (
	"errors"
	"strings"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/backup/seal"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/objects/place"
)

// setRecipients gives a policy its recipients: those of the request, or those that the cluster has.
func setRecipients(p, has *kv.BackupPolicy, r *quoratepb.StartBackupRequest) error {
	samePlace := place.SameURL(p.Place, has.Place)
	switch given := r.GetRecipients(); {
	case len(given) > 0 && r.GetInTheClear():
		return errors.New("choose recipients, or a backup in the clear")
	case len(given) > 0:
		parsed, err := seal.ParseRecipients(given)
		if err != nil {
			return err
		}
		p.Recipients = parsed.String()
	case !r.GetInTheClear():
		p.Recipients = has.Recipients
	case samePlace && has.Recipients != "":
		return errors.New("a backup that was encrypted goes on in the clear only at another place: give one")
	}
	p.TakeSecrets(has, samePlace, func() [kv.BackupSecretBytes]byte { return seal.NewSecret() })
	return nil
}

// recipientsOf are the recipients of a policy.
func recipientsOf(p *kv.BackupPolicy) []string { return strings.Fields(p.Recipients) }
