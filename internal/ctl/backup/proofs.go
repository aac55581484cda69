package backup

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/ctl/progress"
)

// proofs say when a restore was proven last, how the last try ended if that was another one, and who tries now.
func proofs(b *quoratepb.BackupStatus) (lines []string) {
	last, proven := b.GetVerified(), b.GetProven()
	if proven != nil {
		lines = append(lines, provenLine(b, proven))
	}
	switch why := printable.Text(last.GetWhy(), mostTrouble); {
	case last == nil && len(b.GetRecipients()) > 0:
		lines = append(lines, "no restore was tried yet")
	case last == nil:
		lines = append(lines, "no restore was tried yet: `quorate backup verify --from URL --report --endpoints MEMBERS` "+
			"tries one")
	case last.GetFailed():
		lines = append(lines, fmt.Sprintf("a restore failed %s, tried by %s: %s", ago(b, last.GetTimeMs()), prover(last),
			why))
	case !last.GetProven():
		lines = append(lines, fmt.Sprintf("no restore could be tried by %s %s: %s", prover(last),
			ago(b, last.GetTimeMs()), why))
	case last.GetDamaged() > 0:
		lines = append(lines, fmt.Sprintf("%s damaged or gone, and the newest state was proven without: %s",
			plural.Of(int(min(last.GetDamaged(), 1<<30)), "object")+is(last.GetDamaged()), why))
	case why != "":
		lines = append(lines, "the last proof is not whole: "+why)
	}
	switch {
	case !b.GetOn():
	case b.GetProving() != 0:
		lines = append(lines, fmt.Sprintf("a restore is tried now by %s, since %s",
			printable.Text(b.GetProvingName(), mostTrouble),
			since(b, b.GetProvingSinceMs())))
	case len(b.GetRecipients()) > 0:
		lines = append(lines, "members cannot prove an encrypted backup; only an operator can: `quorate backup verify "+
			"--from URL --identity FILE --report --endpoints MEMBERS`")
	case b.GetVerifySeconds() == 0:
		lines = append(lines, "members do not prove it (--verify-every 0)")
	default:
		lines = append(lines, "members prove it every "+progress.Duration(time.Duration(b.GetVerifySeconds())*time.Second))
	}
	return lines
}

func is(n uint64) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

// provenLine is the last restore that proved a state.
func provenLine(b *quoratepb.BackupStatus, p *quoratepb.BackupProven) string {
	line := fmt.Sprintf("a restore of revision %d was proven %s by %s, in %s", p.GetRevision(), ago(b, p.GetTimeMs()),
		prover(p), progress.Duration(time.Duration(p.GetTookMs())*time.Millisecond))
	if n := p.GetBases(); n > 0 {
		line += fmt.Sprintf("; %s the contents that the log leads to", plural.Of(int(min(n, 1<<30)), "base")+has(n))
	}
	return line
}

func has(n uint64) string {
	if n == 1 {
		return " has"
	}
	return " have"
}

// prover is who tried.
func prover(p *quoratepb.BackupProven) string {
	switch {
	case p.GetMember() != 0:
		return printable.Text(p.GetMemberName(), mostTrouble)
	case p.GetBy() != "":
		return "the operator " + printable.Text(p.GetBy(), mostTrouble)
	}
	return "an operator"
}

// since says how long something lasts, by the clock of the member that answered.
func since(b *quoratepb.BackupStatus, at int64) string {
	return progress.Duration(max(0, time.Duration(b.GetNowMs()-at)*time.Millisecond))
}
