package consensus

// DecodeConfig reads what AppendConfig wrote.
func DecodeConfig(src []byte) (c Config, rest []byte, err error) {
	r := reader{src: src}
	c = r.config()
	rest, err = r.end()
	return c, rest, err
}
