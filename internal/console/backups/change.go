package backups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/backup/seal"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/storage/objects/place"
)

// formView are the forms, filled with what the cluster has.
type formView struct {
	On, Admin            bool
	Place                string
	Base, Seal, Verify   string
	Keep                 string // the rule
	Encrypted            string // to how many recipients; empty: to none
	Start, Check, Sample string // commands
}

func form(ctx context.Context, r *page.Request) (any, error) {
	b, err := ask(ctx, r)
	if err != nil {
		return nil, err
	}
	v := &formView{On: b.GetOn(), Admin: r.Admin, Place: b.GetPlace(), Base: "6h", Seal: "1s", Verify: "24h",
		Start: r.Command("backup", "start", "URL"), Check: "quorate backup check URL", Keep: cmp.Or(b.GetKeep(), keep.All)}
	if n := len(b.GetRecipients()); n > 0 {
		v.Encrypted = plural.Of(n, "recipient")
	}
	if b.GetGeneration() != 0 {
		v.Base, v.Seal = typeable(b.GetBaseSeconds()*1000), typeable(b.GetSealMs())
		v.Verify = typeable(b.GetVerifySeconds() * 1000)
	}
	return v, nil
}

// typeable is a duration of so many milliseconds as a flag takes it, without parts that are zero.
func typeable(ms int64) string {
	text := (time.Duration(ms) * time.Millisecond).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// asked is what a form asks for.
type asked struct {
	request              *quoratepb.StartBackupRequest
	place                string // as it is shown
	base, seal, verifies time.Duration
	rule                 keep.Rule // with no window: all stays, or what the cluster has if the request says nothing
	recipients           []string  // none: as before
}

// read reads a form, of a page or of an action.
func read(get func(string) string) (a asked, err error) {
	at, err := place.Parse(strings.TrimSpace(get("place")))
	if err != nil {
		return a, page.FormError(err.Error() + ". Nothing was changed.")
	}
	for _, field := range []struct {
		name, words string
		unit        time.Duration
		to          *time.Duration
	}{{"base", "a base is made", time.Second, &a.base}, {"seal", "entries are sealed", time.Millisecond, &a.seal},
		{"verify", "it is proven", time.Second, &a.verifies}} {
		d, err := time.ParseDuration(strings.TrimSpace(get(field.name)))
		if err != nil || d < 0 || d%field.unit != 0 {
			return a, page.FormError(fmt.Sprintf("How often %s is not a duration such as 6h, 24h, 30m or 1s. Nothing was "+
				"changed.", field.words))
		}
		*field.to = d
	}
	rule, err := keep.Parse(strings.TrimSpace(get("keep")))
	if err != nil {
		return a, page.FormError("What stays at the place is no rule: " + err.Error() + ". Nothing was changed.")
	}
	words := strings.FieldsFunc(get("recipients"), func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	if len(words) > 0 {
		// One that is none is not sent, nor shown: it may be a secret key.
		if _, err := seal.ParseRecipients(words); err != nil && !errors.Is(err, seal.ErrFIPS) {
			return a, page.FormError("The backup cannot be encrypted to that: " + err.Error() + ". Nothing was changed.")
		}
	}
	a.rule, a.recipients = rule, words
	a.place = at.String()
	a.request = &quoratepb.StartBackupRequest{Place: a.place, Keep: strings.TrimSpace(get("keep")), Recipients: words,
		BaseSeconds: int64(a.base / time.Second), SealMs: a.seal.Milliseconds(),
		VerifySeconds: new(int64(a.verifies / time.Second))}
	return a, nil
}

// confirmView is what a form does.
type confirmView struct {
	Title, Fault string
	Will         []string // a sentence each
	Place        string
	Base, Seal   string
	Verify       string
	Keep         string
	Recipients   string
	Preview      string // the command that shows what a rule removes; empty: none is set
	Stops        bool
	Admin        bool
}

func confirm(ctx context.Context, r *page.Request) (any, error) {
	v := &confirmView{Admin: r.Admin}
	b, err := ask(ctx, r)
	if err != nil {
		return nil, err
	}
	switch r.Query.Get("do") {
	case "stop":
		v.stop(b)
	case "start":
		a, err := read(r.Query.Get)
		if err != nil {
			v.Fault = err.Error()
			break
		}
		v.start(b, &a)
		v.read(b, &a)
		v.keep(r, b, &a)
	default:
		v.Fault = "This page is reached from the page of backups, by one of its forms."
	}
	return v, nil
}

func (v *confirmView) stop(b *quoratepb.BackupStatus) {
	v.Stops, v.Title = true, "Stop the continuous backup"
	if !b.GetOn() {
		v.Fault = "No backup is on."
		return
	}
	v.Will = []string{"Nothing that is written from now on can be restored, until it is started again: that is a gap.",
		"Everything that is at " + b.GetPlace() + " stays there, and can be restored."}
}

func (v *confirmView) start(b *quoratepb.BackupStatus, a *asked) {
	// Zero is as before, or else what a policy begins with: the page shows that number, and its form asks for it.
	a.base = cmp.Or(a.base, time.Duration(b.GetBaseSeconds())*time.Second, 6*time.Hour)
	a.seal = cmp.Or(a.seal, time.Duration(b.GetSealMs())*time.Millisecond, time.Second)
	v.Place, v.Base, v.Seal, v.Verify = a.place, typeable(a.base.Milliseconds()), typeable(a.seal.Milliseconds()),
		typeable(a.verifies.Milliseconds())
	v.Title = "Start the continuous backup"
	switch {
	case b.GetOn() && b.GetPlace() != a.place:
		v.Title = "Move the continuous backup"
		v.Will = append(v.Will, "It goes to "+a.place+" instead of "+b.GetPlace()+", and begins there with a new base.",
			"Everything that is at "+b.GetPlace()+" stays there.")
	case b.GetOn():
		v.Title = "Change the continuous backup"
		v.Will = append(v.Will, "It goes on at "+a.place+".")
	case b.GetGeneration() != 0 && b.GetPlace() == a.place:
		v.Will = append(v.Will, "It goes on at "+a.place+". Entries that were written since it was stopped are a gap.")
	default:
		v.Will = append(v.Will, "All keys, users and password hashes of the cluster are written to "+a.place+".")
	}
	v.Will = append(v.Will, "A base is made every "+v.Base+", and entries are sealed after "+v.Seal+".")
	switch {
	case encrypted(b), len(a.recipients) > 0:
		v.Will = append(v.Will, "Members cannot prove it, since it is encrypted: an operator must, by quorate backup verify "+
			"--report.")
	case a.verifies == 0:
		v.Will = append(v.Will, "Members do not prove it: an operator must, by quorate backup verify --report.")
	default:
		v.Will = append(v.Will, "A member proves it every "+v.Verify+" by a restore, and once when the first base is there.")
	}
	v.Will = append(v.Will, "Each member must be able to reach the place: quorate backup check tries it on a machine.")
}

// read says who can read the backup.
func (v *confirmView) read(b *quoratepb.BackupStatus, a *asked) {
	has, wants := b.GetRecipients(), a.recipients
	v.Recipients = strings.Join(wants, " ")
	switch same := b.GetPlace() == a.place; {
	case len(wants) == 0 && len(has) == 0:
		v.Will = append(v.Will, "It is in the clear: who can read the place can read all keys.")
	case len(wants) == 0:
		v.Will = append(v.Will, "It is encrypted to "+plural.Of(len(has), "recipient")+", as before.")
	default:
		v.Will = append(v.Will, "It is encrypted to "+plural.Of(len(wants), "recipient")+", and to nobody else from now on: "+
			v.Recipients+". If all their secret keys are lost, so is the backup.")
		if same && len(has) == 0 && b.GetGeneration() != 0 {
			v.Will = append(v.Will, "What is at the place already stays there in the clear.")
		}
	}
}

// keep says what stays at the place.
func (v *confirmView) keep(r *page.Request, b *quoratepb.BackupStatus, a *asked) {
	v.Keep = a.request.GetKeep()
	rule, before := a.rule.String(), ""
	if v.Keep == "" || v.Keep == b.GetKeep() {
		rule, before = cmp.Or(b.GetKeep(), keep.All), ", as before"
	}
	if rule == keep.All {
		v.Will = append(v.Will, "Nothing is ever removed from the place"+before+".")
		return
	}
	v.Will = append(v.Will, "What stays at the place is said by the rule "+rule+before+". The member that ships removes the "+
		"rest, for ever.")
	v.Preview = r.Command("backup", "retention", "--from", a.place, "--keep", rule)
}

// confirmCommand is the command line that does the same; empty: there is none.
func confirmCommand(r *page.Request) string {
	switch r.Query.Get("do") {
	case "stop":
		return r.Command("backup", "stop")
	case "start":
		if a, err := read(r.Query.Get); err == nil {
			words := []string{"backup", "start", a.place, "--base-every", typeable(a.base.Milliseconds()), "--seal-after",
				typeable(a.seal.Milliseconds()), "--verify-every", typeable(a.verifies.Milliseconds())}
			if rule := a.request.GetKeep(); rule != "" {
				words = append(words, "--keep", rule)
			}
			for _, recipient := range a.recipients {
				words = append(words, "--recipient", recipient)
			}
			return r.Command(words...)
		}
	}
	return ""
}

func start(ctx context.Context, r *page.Request) (page.Outcome, error) {
	a, err := read(r.Form.Get)
	if err != nil {
		return page.Outcome{}, err
	}
	_, err = quoratepb.NewBackupClient(r.Conn).Start(ctx, a.request)
	return page.Outcome{To: path, Said: "The backup goes to " + a.place + "."}, inForm(err)
}

func stop(ctx context.Context, r *page.Request) (page.Outcome, error) {
	if r.Form.Get("typed") != "stop" {
		return page.Outcome{}, page.FormError("Type stop to stop the backup. Nothing was changed.")
	}
	_, err := quoratepb.NewBackupClient(r.Conn).Stop(ctx, &quoratepb.StopBackupRequest{})
	return page.Outcome{To: path, Said: "The backup is stopped. Its objects stay at the place."}, inForm(err)
}

// inForm is an error about what a form says in its own words; others are explained by the frame.
func inForm(err error) error {
	if status.Code(err) == codes.InvalidArgument {
		return page.FormError("The cluster refuses it: " + page.Text(status.Convert(err).Message()) + ". Nothing was changed.")
	}
	return err
}
