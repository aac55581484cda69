package pictures

import (
	"slices"
)

// throughput has a panel for each workload, side by side.
func throughput(r *Results) []byte {
	var workloads []string
	for _, s := range r.Servers {
		for _, curve := range s.Curves {
			if !slices.Contains(workloads, curve.Workload) {
				workloads = append(workloads, curve.Workload)
			}
		}
	}
	if len(workloads) == 0 {
		return nil
	}
	c := newCanvas("Throughput against clients",
		"Three members and their clients on one machine, fsync on; medians of rounds, bars from the least to the most")
	var entries []entry
	for i, s := range r.Servers {
		entries = append(entries, lineEntry(s.Name, "l "+colour("s", i)))
	}
	c.legend(margin, c.y+14, entries)
	const gap, left, height = 30, 52, 250
	each := (width - 2*margin - gap*float64(len(workloads)-1)) / float64(len(workloads))
	top := c.y + 52
	for i, workload := range workloads {
		x := margin + float64(i)*(each+gap)
		c.curves(r, workload, x+left, top, each-left-8, height)
	}
	c.y = top + height + 44
	return c.finish(r)
}

func (c *canvas) curves(r *Results, workload string, x, y, w, h float64) {
	var clients []float64
	most := 0.0
	for _, s := range r.Servers {
		for _, curve := range s.Curves {
			for _, p := range curve.Points {
				if curve.Workload == workload {
					clients, most = append(clients, float64(p.Clients)), max(most, p.Most)
				}
			}
		}
	}
	marks := steps(most)
	ys := scale{from: 0, to: marks[len(marks)-1], begin: y + h, end: y}
	xs := scale{from: slices.Min(clients), to: slices.Max(clients), begin: x + 14, end: x + w - 14, logarithmic: true}
	if xs.from == xs.to {
		xs.to = xs.from * 2
	}
	c.text(x, y-14, "p", titleOf(workload)+" a second")
	for _, v := range marks {
		c.line(x, ys.at(v), x+w, ys.at(v), "g")
		c.text(x-6, ys.at(v)+4, "d e", count(v))
	}
	c.line(x, y+h, x+w, y+h, "a")
	slices.Sort(clients)
	for _, v := range slices.Compact(clients) {
		c.line(xs.at(v), y+h, xs.at(v), y+h+4, "a")
		c.text(xs.at(v), y+h+18, "d m", count(v))
	}
	c.text(x+w/2, y+h+36, "d m", "clients, each on a connection of its own")
	for i, s := range r.Servers {
		for _, curve := range s.Curves {
			if curve.Workload != workload {
				continue
			}
			var px, py []float64
			for _, p := range curve.Points {
				at := xs.at(float64(p.Clients))
				px, py = append(px, at), append(py, ys.at(p.Median))
				c.line(at, ys.at(p.Least), at, ys.at(p.Most), "n "+colour("s", i))
			}
			c.path(px, py, "l "+colour("s", i))
			for n := range px {
				c.addf(`<circle cx="%s" cy="%s" r="3.6" class="%s"><title>%s, %d clients: %s</title></circle>`,
					at(px[n]), at(py[n]), colour("f", i), escape(s.Name), curve.Points[n].Clients,
					count(curve.Points[n].Median))
			}
		}
	}
}
