package limit

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/wording"
	"github.com/quorate/quorate/internal/kv"
)

// line is a limit as JSON.
type line struct {
	Name      string           `json:"name"`
	User      string           `json:"user,omitempty"`
	Prefix    *string          `json:"prefix,omitempty"`
	Bytes     []byte           `json:"prefix_base64,omitempty"` // a prefix that is no UTF-8
	Bounds    map[string]int64 `json:"bounds"`                  // by the name of their flag
	Refused   uint64           `json:"refused"`
	Counting  bool             `json:"counting,omitempty"`
	UsedBytes *int64           `json:"used_bytes,omitempty"`
	UsedKeys  *int64           `json:"used_keys,omitempty"`
}

func lineOf(state *quoratepb.LimitState) line {
	l := state.GetLimit()
	out := line{Name: l.GetName(), User: l.GetUser(), Bounds: map[string]int64{}, Refused: state.GetRefused(),
		Counting: state.GetCounting()}
	if prefix := string(l.GetPrefix()); l.Prefix != nil && utf8.ValidString(prefix) {
		out.Prefix = &prefix
	} else {
		out.Bytes = l.GetPrefix()
	}
	for _, b := range wording.LimitBounds {
		if field := *b.Field(l); field != nil {
			out.Bounds[b.Flag] = *field
		}
	}
	if hasQuota(l) {
		out.UsedBytes, out.UsedKeys = &state.UsedBytes, &state.UsedKeys
	}
	return out
}

func hasQuota(l *quoratepb.Limit) bool { return l.QuotaBytes != nil || l.QuotaKeys != nil }

func print(s command.Streams, asJSON bool, states []*quoratepb.LimitState) error {
	if asJSON {
		lines := []line{}
		for _, state := range states {
			lines = append(lines, lineOf(state))
		}
		return command.PrintJSON(s.Out, lines)
	}
	var table command.Table
	table.Add("NAME", "USER", "PREFIX", "ALLOWS", "HAS", "REFUSED")
	for _, state := range states {
		l, user, prefix := state.GetLimit(), "every", "-"
		if l.GetUser() != "" {
			user = printable.Text(l.GetUser(), kv.MaxLimitUser)
		}
		if l.Prefix != nil {
			prefix = strconv.QuoteToASCII(string(l.GetPrefix()))
		}
		table.Add(printable.Text(l.GetName(), kv.MaxLimitName), user, prefix, allows(l), has(state),
			strconv.FormatUint(state.GetRefused(), 10))
	}
	table.Print(s.Out)
	return nil
}

// allows is what a limit lets pass.
func allows(l *quoratepb.Limit) string {
	var words []string
	for _, b := range wording.LimitBounds {
		field := *b.Field(l)
		switch {
		case field == nil:
		case b.Bytes:
			words = append(words, progress.Size(*field)+" "+b.Word)
		default:
			words = append(words, fmt.Sprintf("%d %s", *field, b.Word))
		}
	}
	return strings.Join(words, ", ")
}

// has is what the prefix of a limit with a quota has.
func has(state *quoratepb.LimitState) string {
	switch {
	case !hasQuota(state.GetLimit()):
		return "-"
	case state.GetCounting():
		return fmt.Sprintf("counting, %d keys so far", state.GetUsedKeys())
	}
	return fmt.Sprintf("%s, %d keys", progress.Size(state.GetUsedBytes()), state.GetUsedKeys())
}

func sentence(state *quoratepb.LimitState) string {
	text := allows(state.GetLimit())
	if hasQuota(state.GetLimit()) {
		text += "; the prefix has " + has(state)
	}
	return text
}
