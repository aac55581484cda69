package pictures

import (
	"fmt"
	"slices"
)

// cpu has a panel for each workload, one above the other, and in it a bar for each part and server.
func cpu(r *Results) []byte {
	var workloads []Spent
	most := 0.0
	for _, s := range r.Servers {
		for _, spent := range s.Parts {
			if !slices.ContainsFunc(workloads, func(w Spent) bool { return w.Workload == spent.Workload }) {
				workloads = append(workloads, spent)
			}
			for _, share := range spent.Parts {
				most = max(most, share.Micros)
			}
		}
	}
	if len(workloads) == 0 {
		return nil
	}
	c := newCanvas("Processor time of the servers by part",
		"Microseconds for one operation, all three members together; CPU profiles of all members, grouped by one "+
			"table of functions")
	var entries []entry
	for i, s := range r.Servers {
		entries = append(entries, boxEntry(s.Name, colour("f", i)))
	}
	c.legend(margin, c.y+14, entries)
	const gap, bar, left = 40, 13, 128
	marks := steps(most)
	each := (width - 2*margin - gap*float64(len(workloads)-1)) / float64(len(workloads))
	top := c.y + 74
	group := float64(len(r.Servers)*bar + 12)
	for n, workload := range workloads {
		x, w := margin+float64(n)*(each+gap)+left, each-left-44
		h := group * float64(len(workload.Parts))
		xs := scale{from: 0, to: marks[len(marks)-1], begin: x, end: x + w}
		c.text(x-left, top-32, "p", fmt.Sprintf("%s, %d clients", titleOf(workload.Workload), workload.Clients))
		c.text(x-left, top-14, "d", totals(r, workload.Workload))
		for _, v := range marks {
			c.line(xs.at(v), top, xs.at(v), top+h, "g")
			c.text(xs.at(v), top+h+18, "d m", count(v))
		}
		c.text(x+w/2, top+h+36, "d m", "us for one operation")
		for i, part := range workload.Parts {
			y := top + float64(i)*group + 6
			c.text(x-8, y+float64(len(r.Servers)*bar)/2+4, "e", part.Part)
			for k, s := range r.Servers {
				micros := s.micros(workload.Workload, part.Part)
				c.box(x, y+float64(k*bar), max(xs.at(micros)-x, 0.5), bar-1, colour("f", k))
				c.text(xs.at(micros)+4, y+float64(k*bar)+bar-2, "f", short(micros))
			}
		}
		c.line(x, top, x, top+h, "a")
		c.y = max(c.y, top+h+40)
	}
	return c.finish(r)
}

func (s *Server) micros(workload, part string) float64 {
	for _, spent := range s.Parts {
		for _, share := range spent.Parts {
			if spent.Workload == workload && share.Part == part {
				return share.Micros
			}
		}
	}
	return 0
}

// totals says what all parts together take.
func totals(r *Results, workload string) string {
	text := "in all"
	for i, s := range r.Servers {
		sum := 0.0
		for _, spent := range s.Parts {
			for _, share := range spent.Parts {
				if spent.Workload == workload {
					sum += share.Micros
				}
			}
		}
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s %.0f us", s.Name, sum)
	}
	return text
}
