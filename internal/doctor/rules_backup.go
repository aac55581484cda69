package doctor

import (
	"strings"

	"github.com/quorate/quorate/internal/base/plural"
)

const cureBackup = "quorate backup status"

// backup is the continuous backup, as the member sees it that has applied most.
func (p *patient) backup() (all []Finding) {
	b := p.latest().GetBackup()
	if !b.GetOn() {
		return nil
	}
	all = p.backupRefused()
	late, most := b.GetRestorableMs(), BackupLate(b.GetSealMs())
	if late == 0 { // nothing was shipped yet
		late = b.GetSinceMs()
	}
	if late >= most && b.GetSinceMs() >= most {
		why := "no member reports since " + span(max(b.GetReportedMs(), b.GetSinceMs()))
		switch {
		case b.GetTrouble() != "":
			why = "the place takes nothing: " + b.GetTrouble()
		case b.GetReportedMs() != 0 && b.GetReportedMs() < backupLate:
			why = "the member that ships does not keep up"
		case b.GetReportedMs() != 0:
			why = "no member has reported for " + span(b.GetReportedMs())
		case b.GetMember() == 0:
			why = "no member is appointed to ship it"
		}
		what := "nothing of the last " + span(late) + " can be restored"
		if b.GetRestorableMs() == 0 {
			what = "nothing can be restored yet, " + span(late) + " after it was started"
		}
		all = append(all, found(BackupBehind, SlowerThanIs, nil, cureBackup, "the backup is behind: %s; %s", what, why))
	}
	if age := b.GetGapMs(); age > 0 && age < backupGapTold {
		all = append(all, found(BackupGap, SlowerThanIs, nil, cureBackup, "the backup has a gap, noted %s ago: states "+
			"within cannot be restored, all others can. The place took nothing for longer than the log was kept, or the "+
			"backup was stopped or went elsewhere meanwhile. It has %s since it goes there",
			span(age), plural.Of(b.GetGaps(), "gap")))
	}
	if why := b.GetRetentionWhy(); why != "" {
		all = append(all, found(BackupRetention, SlowerThanIs, nil, cureBackup, "the backup grows: retention does not remove "+
			"what the rule does not keep: %s", why))
	}
	return append(all, proofs(b)...)
}

// backupRefused finds members whose operators do not let them ship to the place.
func (p *patient) backupRefused() []Finding {
	var refuse []*seat
	for _, s := range p.answered() {
		if b := s.o.GetBackup(); b.GetOn() && b.GetRefused() != "" {
			refuse = append(refuse, s)
		}
	}
	if len(refuse) == 0 {
		return nil
	}
	const cure = "start the members with --backup-places"
	why := refuse[0].o.GetBackup().GetRefused()
	if len(refuse) == len(p.answered()) {
		return []Finding{found(BackupRefused, SlowerThanIs, names(refuse), cure, "no member that answers may ship the backup: "+
			"of %s, %s", refuse[0].name(), why)}
	}
	return []Finding{found(BackupRefused, Advice, names(refuse), cure, "%s may not ship the backup, and cannot go on with it "+
		"where the others are away: of %s, %s", strings.Join(names(refuse), ", "), refuse[0].name(), why)}
}
