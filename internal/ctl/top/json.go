package top

import (
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ranking"
)

// output is what programs get.
type output struct {
	By       string         `json:"by"`
	Covers   float64        `json:"covers_s"`
	OneOf    uint32         `json:"one_of"`         // of so many small calls one was counted, as so many
	Watchers uint32         `json:"one_watcher_of"` // of so many watchers one was counted
	Members  []outputMember `json:"members"`
	Total    outputRow      `json:"total"`
	Rows     []outputRow    `json:"rows"`
	NotShown float64        `json:"not_shown_at_most"` // what is in no row has at most so much of what rows are ranked by
}

type outputMember struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Endpoint string `json:"endpoint,omitempty"`
	Error    string `json:"error,omitempty"`
}

// outputRow has rates a second.
type outputRow struct {
	Prefix     *string `json:"prefix,omitempty"` // quoted if it is no plain text
	Operation  string  `json:"operation,omitempty"`
	User       string  `json:"user,omitempty"`
	Host       string  `json:"host,omitempty"`
	Operations float64 `json:"ops"`
	Bytes      float64 `json:"bytes"`
	Processors float64 `json:"cpu"` // estimated
	Watchers   float64 `json:"watchers"`
	Share      float64 `json:"share"`
	Most       float64 `json:"at_most"` // of what rows are ranked by
}

func outputOf(s *summary, v *view) output {
	_, beyond := s.Beyond(v.View, v.rows)
	o := output{By: v.By, Covers: s.Covers.Seconds(), OneOf: s.OneOf, Watchers: s.Watchers, NotShown: beyond,
		Rows: []outputRow{}}
	for _, list := range [][]source{s.answered, s.missing} {
		for i := range list {
			m := outputMember{ID: command.HexID(list[i].id), Name: plain(list[i].name), Endpoint: plain(list[i].endpoint)}
			if list[i].answer == nil {
				m.Error = printable.Text(list[i].reason(), mostSentence)
			}
			o.Members = append(o.Members, m)
		}
	}
	o.Total = outputRowOf(&s.Total)
	o.Total.Share, o.Total.Most = 1, v.Ranked(&s.Total)
	for i := range s.Rows[:min(v.rows, len(s.Rows))] {
		r := outputRowOf(&s.Rows[i])
		if !v.Clients {
			prefix := plain(s.Rows[i].Prefix)
			r.Prefix = &prefix
		}
		o.Rows = append(o.Rows, r)
	}
	return o
}

func outputRowOf(r *ranking.Row) outputRow {
	return outputRow{Operation: plain(r.Operation), User: plain(r.User), Host: plain(r.Host), Operations: r.Operations,
		Bytes: r.Bytes, Processors: r.Processors, Watchers: r.Watchers, Share: r.Share, Most: r.Most}
}
