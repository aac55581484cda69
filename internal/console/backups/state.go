package backups

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/console/prose"
	"github.com/quorate/quorate/internal/doctor"
)

func ask(ctx context.Context, r *page.Request) (*quoratepb.BackupStatus, error) {
	return quoratepb.NewBackupClient(r.Conn).Status(ctx, &quoratepb.BackupStatusRequest{})
}

// stateView is how far the backup is.
type stateView struct {
	Never, On          bool
	Look, Word         string // of the tag
	Place              string
	Reach, ReachOf     string // age and revision of the last state that can be restored; empty: none
	Base, BaseOf       string
	Gaps               string
	Ships, Reported    string
	Seal, Every, Since string
	Gap, Trouble       string
	Kept, Removes      string // rule; why retention removes less
	Recipients         int
}

func state(ctx context.Context, r *page.Request) (any, error) {
	b, err := ask(ctx, r)
	if err != nil {
		return nil, err
	}
	v := &stateView{Never: b.GetGeneration() == 0, On: b.GetOn(), Place: b.GetPlace(), Gaps: page.Count(int64(b.GetGaps())),
		Seal: typeable(b.GetSealMs()), Every: seconds(b.GetBaseSeconds()),
		Since: page.Moment(b.GetSinceMs()), Trouble: b.GetTrouble()}
	if p := b.GetRestorable(); p != nil {
		v.Reach, v.ReachOf = age(b, p.GetTimeMs()), page.Count(p.GetRevision())
	}
	if p := b.GetBase(); p != nil {
		v.Base, v.BaseOf = age(b, p.GetTimeMs()), page.Count(p.GetRevision())
	}
	if b.GetMember() != 0 {
		v.Ships = b.GetMemberName()
	}
	if at := b.GetReportedMs(); at != 0 {
		v.Reported = age(b, at)
	}
	if g := b.GetGap(); g != nil {
		v.Gap = fmt.Sprintf("after entry %s until entry %s, noted %s ago", page.Count(int64(g.GetAfter())),
			page.Count(int64(g.GetUntil())), age(b, g.GetTimeMs()))
	}
	if v.Kept = "by the rule " + b.GetKeep(); b.GetKeep() == "" || b.GetKeep() == "all" {
		v.Kept = "everything"
	}
	v.Removes, v.Recipients = b.GetRetention().GetWhy(), len(b.GetRecipients())
	v.Look, v.Word = wellness(b)
	return v, nil
}

// wellness is the tag of a backup.
func wellness(b *quoratepb.BackupStatus) (look, word string) {
	behind := b.GetNowMs() - b.GetRestorable().GetTimeMs()
	switch {
	case !b.GetOn():
		return "warn", "off"
	case b.GetTrouble() != "":
		return "bad", "the place takes nothing"
	case b.GetRestorable() == nil:
		return "warn", "the first base is not complete"
	case behind >= doctor.BackupLate(b.GetSealMs()):
		return "bad", "behind"
	}
	return "good", "on"
}

func seconds(n int64) string { return page.Duration(time.Duration(n) * time.Second) }

// age is how long a time is ago, by the clock of the member that answered.
func age(b *quoratepb.BackupStatus, at int64) string {
	return page.Seconds(max(0, time.Duration(b.GetNowMs()-at)*time.Millisecond))
}

// proofView is the last proven restore, and the last try if it is another one.
type proofView struct {
	Never, Off bool
	Encrypted  bool // members cannot prove it
	Proven     *tryView
	Last       *tryView // differs from Proven; nil: it does not
	Now        string   // who tries now
	NowSince   string
	Every      string // how often members try; empty: never
	Verify     string // the command that proves
}

// tryView is a try to restore.
type tryView struct {
	Look, Word             string
	Revision, Of, Ago, At  string
	Took, By, Entries      string
	Bases, Damaged         int64
	Why                    string
	Remedy                 []prose.Piece
	Operator, Old, Failing bool
	Partly                 bool // it was proven, and not all bases were compared
}

func proof(ctx context.Context, r *page.Request) (any, error) {
	b, err := ask(ctx, r)
	if err != nil {
		return nil, err
	}
	v := &proofView{Never: b.GetGeneration() == 0, Off: !b.GetOn(), Encrypted: encrypted(b), Verify: verifyCommand(b, r)}
	if v.Never {
		return nil, page.ErrHidden
	}
	if n := b.GetVerifySeconds(); n > 0 {
		v.Every = seconds(n)
	}
	if b.GetProving() != 0 {
		v.Now, v.NowSince = b.GetProvingName(), age(b, b.GetProvingSinceMs())
	}
	if p := b.GetProven(); p != nil {
		v.Proven = tryOf(b, p)
	}
	if p := b.GetVerified(); p != nil && (!p.GetProven() || p.GetWhy() != "") {
		v.Last = tryOf(b, p)
	}
	return v, nil
}

func encrypted(b *quoratepb.BackupStatus) bool { return len(b.GetRecipients()) > 0 }

// verifyCommand is the command by which an operator proves the backup, and tells this member.
func verifyCommand(b *quoratepb.BackupStatus, r *page.Request) string {
	command := doctor.BackupProofCommand(encrypted(b))
	if r.Endpoint == "" {
		return command
	}
	words, _, _ := strings.Cut(command, " --endpoints ")
	return r.Command(strings.Fields(words)[1:]...)
}

func tryOf(b *quoratepb.BackupStatus, p *quoratepb.BackupProven) *tryView {
	t := &tryView{Revision: page.Count(p.GetRevision()), Of: page.Moment(p.GetStateMs()), Ago: age(b, p.GetTimeMs()),
		At: page.Moment(p.GetTimeMs()), By: p.GetMemberName(),
		Took:    page.Duration(time.Duration(p.GetTookMs()) * time.Millisecond),
		Entries: page.Count(int64(p.GetEntries())), Bases: int64(p.GetBases()), Damaged: int64(p.GetDamaged()), Why: p.GetWhy()}
	if p.GetMember() == 0 {
		t.Operator, t.By = true, p.GetBy()
	}
	t.Partly = p.GetProven() && p.GetDamaged() == 0 && p.GetWhy() != ""
	t.Old = b.GetNowMs()-p.GetTimeMs() >= doctor.BackupProofOld(b.GetVerifySeconds(), encrypted(b))
	if p.GetFailed() || p.GetDamaged() > 0 {
		newest := int64(0)
		if base := b.GetBase(); base != nil {
			newest = max(1, b.GetNowMs()-base.GetTimeMs())
		}
		t.Remedy = prose.Of(doctor.BackupRemedy(p.GetWhy(), newest, b.GetBaseSeconds()) + ".")
	}
	switch {
	case p.GetFailed():
		t.Look, t.Word, t.Failing = "bad", "cannot be restored", true
	case !p.GetProven():
		t.Look, t.Word = "warn", "not tried"
	case t.Old:
		t.Look, t.Word = "warn", "proven, long ago"
	default:
		t.Look, t.Word = "good", "proven"
	}
	return t
}
