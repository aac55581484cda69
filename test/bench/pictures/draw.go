package pictures

// Draw draws all pictures, by the names of their files. A picture of which nothing was measured is left out.
func Draw(r *Results) map[string][]byte {
	all := map[string][]byte{}
	add := func(name string, drawn []byte) {
		if drawn != nil {
			all[name] = drawn
		}
	}
	add("throughput.svg", throughput(r))
	add("latency.svg", latency(r))
	add("cpu.svg", cpu(r))
	return all
}
