package limits

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// change is a bound before and after.
type change struct {
	Bound, Before, After string
	Differs              bool
}

// previewView is what a form would do.
type previewView struct {
	Name      string
	Fault     string // why there is nothing to set
	Of        []string
	Replaces  bool
	Former    []string // whose requests the former one is about, if that changes
	Changes   []change
	Same      bool // it is there already, as it was typed
	Sentences []string
	Warnings  []string
	Held      string
	Fields    url.Values // of the form, once more
	Sum       string
	Admin     bool
	Command   string
}

// preview says what the limit does, beside what is there now.
func preview(ctx context.Context, r *page.Request) (any, error) {
	if !r.Query.Has("name") {
		return nil, page.ErrHidden // nothing was typed yet
	}
	a := askedIn(r.Query)
	states, err := limitsOf(ctx, r)
	if err != nil {
		return nil, err
	}
	v := previewView{Name: a.Name, Fields: a.query(), Admin: r.Admin}
	l, err := a.limit()
	var wrong page.FormError
	if errors.As(err, &wrong) {
		v.Fault = string(wrong)
		return v, nil
	}
	all, err := observed.Ask(ctx, r)
	if err != nil {
		all = observed.Of(nil)
	}
	v.Of, v.Held = subjectOf(l), held(all)
	former := find(states, a.Name)
	v.Sum, v.Replaces = sumOf(former), former != nil
	if v.Replaces {
		v.Same = sumOf(former) == sumOf(&quoratepb.LimitState{Limit: l})
		if was := subjectOf(former.GetLimit()); strings.Join(was, " ") != strings.Join(v.Of, " ") {
			v.Former = was
		}
	}
	v.Changes = changesOf(former.GetLimit(), l)
	v.Sentences = sentencesOf(l, len(all.Config.GetMembers()))
	v.Warnings = warningsOf(l, former, r)
	if len(states) >= mostLimits && former == nil {
		v.Warnings = append(v.Warnings, fmt.Sprintf("There are %d limits, and no more may be set: delete one first.",
			len(states)))
	}
	return v, nil
}

// mostLimits is how many limits there may be.
const mostLimits = 256

func changesOf(former, l *quoratepb.Limit) (all []change) {
	for i, b := range wording.LimitBounds {
		unit := strings.TrimPrefix(strings.TrimPrefix(labels[i][1], "in bytes"), ", ") // the figures have units of their own
		c := change{Bound: strings.TrimSpace(labels[i][0] + " " + unit)}
		if former != nil {
			c.Before = boundOf(former, &b)
		}
		c.After = boundOf(l, &b)
		if c.Differs = c.Before != c.After; c.Before != "" || c.After != "" {
			all = append(all, c)
		}
	}
	return all
}

func boundOf(l *quoratepb.Limit, b *wording.LimitBound) string {
	if most := *b.Field(l); most != nil {
		return figure(*most, b.Bytes)
	}
	return ""
}

// sentencesOf say what the limit will do.
func sentencesOf(l *quoratepb.Limit, members int) (all []string) {
	rates := l.WritesPerSecond != nil || l.WriteBytesPerSecond != nil || l.ReadsPerSecond != nil || l.ReadBytesPerSecond != nil
	if rates {
		text := "Each member counts for itself: clients that spread over all members get that much of each."
		if l.GetWritesPerSecond() > 0 && members > 1 {
			text = fmt.Sprintf("Each member counts for itself: clients that spread over all %d members get %s writes a second.",
				members, page.Count(l.GetWritesPerSecond()*int64(members)))
		}
		all = append(all, text, "A request that exceeds a rate is refused at once, and nothing of it is done; the "+
			"refusal says when to try again.")
	}
	if l.ValueBytes != nil {
		all = append(all, "Puts of larger values are refused; values that are there stay.")
	}
	if hasQuota(l) {
		all = append(all, "What the prefix has is counted first. The quota holds once that is done: the list says so.",
			"Keys that are there stay, also beyond the quota. Then only deletions and smaller values pass.")
	}
	return all
}

// warningsOf say what a reader may not have meant.
func warningsOf(l *quoratepb.Limit, former *quoratepb.LimitState, r *page.Request) (all []string) {
	var none []string
	for i, b := range wording.LimitBounds {
		if most := *b.Field(l); most != nil && *most == 0 {
			none = append(none, strings.ToLower(labels[i][0]))
		}
	}
	if len(none) > 0 {
		all = append(all, "A bound of 0 lets nothing pass: "+strings.Join(none, ", ")+".")
	}
	was := former.GetLimit()
	if former != nil && !former.GetCounting() && hasQuota(was) && string(was.GetPrefix()) == string(l.GetPrefix()) {
		if l.QuotaBytes != nil && former.GetUsedBytes() > l.GetQuotaBytes() {
			all = append(all, fmt.Sprintf("The prefix has %s already, more than the quota: puts that add anything will be "+
				"refused.", page.Bytes(former.GetUsedBytes())))
		}
		if l.QuotaKeys != nil && former.GetUsedKeys() >= l.GetQuotaKeys() {
			all = append(all, fmt.Sprintf("The prefix has %s already: new keys will be refused.",
				plural.Of(former.GetUsedKeys(), "key")))
		}
	}
	if r.User == "" && l.GetUser() != "" {
		all = append(all, "Nobody is logged in here: if users are off, a limit of a user bounds nobody.")
	}
	return all
}

// setCommand is the command line that sets the limit; empty: nothing was typed, or a shell cannot take it.
func setCommand(r *page.Request) string {
	if !r.Query.Has("name") {
		return ""
	}
	a := askedIn(r.Query)
	l, err := a.limit()
	if err != nil || !typeable(l.GetUser()) || !typeable(string(l.GetPrefix())) {
		return ""
	}
	line := []string{"limit", "set", l.GetName()}
	if l.GetUser() != "" {
		line = append(line, "--for-user", l.GetUser())
	}
	if l.Prefix != nil {
		line = append(line, "--prefix", string(l.GetPrefix()))
	}
	for _, b := range wording.LimitBounds {
		if most := *b.Field(l); most != nil {
			line = append(line, "--"+b.Flag, typedFigure(*most, b.Bytes))
		}
	}
	return r.Command(line...)
}

// typeable reports whether a shell takes a text as it is shown.
func typeable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) &&
		!strings.HasPrefix(text, "-")
}

// setPatience is how long a new quota is waited for: the rest of the time of an action is for a look at it.
const setPatience = 6 * time.Second

// set sets the limit, if what it replaces is what its preview has shown.
func set(ctx context.Context, r *page.Request) (out page.Outcome, err error) {
	a := askedIn(r.Form)
	l, err := a.limit()
	if err != nil {
		return out, err
	}
	states, err := limitsOf(ctx, r)
	if err != nil {
		return out, err
	}
	if sumOf(find(states, l.GetName())) != r.Form.Get("sum") {
		return out, page.FormError("The limit was changed since the preview was made. Nothing was done: look at the " +
			"preview again.")
	}
	patient, cancel := context.WithTimeout(ctx, setPatience)
	defer cancel()
	_, err = quoratepb.NewLimitsClient(r.Conn).SetLimit(patient, &quoratepb.SetLimitRequest{Limit: l})
	said := fmt.Sprintf("The limit %s is set.", l.GetName())
	if code := status.Code(err); code == codes.DeadlineExceeded || code == codes.Canceled {
		after, lookErr := limitsOf(ctx, r)
		set := find(after, l.GetName())
		if lookErr == nil && set != nil && sumOf(set) == sumOf(&quoratepb.LimitState{Limit: l}) {
			said, err = said+" What its prefix has is being counted; the quota holds once that is done.", nil
		}
	}
	return page.Outcome{To: path, Said: said}, err
}
