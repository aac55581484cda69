package kv

// TakeSecrets gives a policy whose recipients are set the secrets that follow those of the policy before it. Other recipients,
// or another place, get a secret that is drawn, and so names and files that share nothing with what the former ones can read.
// At the same place some of the former secrets stay: the member that ships finds by them where to go on.
func (p *BackupPolicy) TakeSecrets(has *BackupPolicy, samePlace bool, draw func() [BackupSecretBytes]byte) {
	if samePlace && p.Recipients == has.Recipients {
		p.Secret, p.Former = has.Secret, has.Former
		return
	}
	if p.Recipients != "" {
		secret := draw()
		p.Secret = string(secret[:])
	}
	if samePlace {
		former := has.Secret
		if former != "" {
			former += has.Former
		}
		p.Former = former[:min(len(former), MaxBackupFormer*BackupSecretBytes)]
	}
}
