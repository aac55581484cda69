package h2

import "encoding/binary"

func (c *conn) settings(f *frame) error {
	switch {
	case f.stream != 0:
		return broken(ProtocolError, "SETTINGS of a stream")
	case f.has(flagAck):
		if len(f.payload) != 0 {
			return broken(FrameSizeError, "an acknowledgement of settings with settings")
		}
		return c.floods.idle(idleFrame)
	case len(f.payload)%6 != 0:
		return broken(FrameSizeError, "SETTINGS of a wrong length")
	case len(f.payload) > 6*maxSettings:
		return broken(EnhanceYourCalm, "too many settings in a frame")
	}
	cost := idleFrame + len(f.payload)/(6*settingsPerFrame)
	c.mu.Lock()
	defer c.mu.Unlock()
	window := c.firstWindow
	for p := f.payload; len(p) > 0; p = p[6:] {
		id, value := binary.BigEndian.Uint16(p), binary.BigEndian.Uint32(p[2:])
		if err := c.set(id, value); err != nil {
			return err
		}
		if id == settingWindow {
			window = int64(value)
		}
	}
	c.out = appendHeader(c.out, 0, typeSettings, flagAck, 0)
	if window == c.firstWindow {
		return c.floods.idle(cost)
	}
	// Once a frame, because it concerns all streams.
	cost += len(c.streams) / streamsPerFrame
	if err := c.floods.idle(cost); err != nil {
		return err
	}
	return c.resize(window)
}

const (
	// maxSettings is how many settings a frame may have. There are about ten; Go's servers have this bound, too.
	maxSettings = 100
	// settingsPerFrame is how many settings cost a client what a frame does.
	settingsPerFrame = 16
	// streamsPerFrame is how many streams a frame may concern that costs a client what one does that concerns none.
	streamsPerFrame = 16
)

func (c *conn) set(id uint16, value uint32) error {
	switch id {
	case settingTableSize:
		c.fields.limit(value)
	case settingPush:
		if value > 1 {
			return broken(ProtocolError, "SETTINGS_ENABLE_PUSH")
		}
	case settingMaxFrame: // ours are of the least size that may be asked for
		if value < maxFrameBytes || value > 1<<24-1 {
			return broken(ProtocolError, "SETTINGS_MAX_FRAME_SIZE")
		}
	case settingWindow:
		if value > maxWindow {
			return broken(FlowControlError, "SETTINGS_INITIAL_WINDOW_SIZE")
		}
	}
	return nil
}

// resize gives all streams another first window, also those that are open (section 6.9.2).
func (c *conn) resize(window int64) error {
	more := window - c.firstWindow
	c.firstWindow = window
	for _, s := range c.streams {
		if s.sendWindow += more; s.sendWindow > maxWindow {
			return broken(FlowControlError, "the window of a stream")
		}
		c.schedule(s)
	}
	return nil
}

func (c *conn) windowUpdate(f *frame) error {
	if len(f.payload) != 4 {
		return broken(FrameSizeError, "WINDOW_UPDATE of a wrong length")
	}
	more := int64(binary.BigEndian.Uint32(f.payload) & maxWindow)
	if f.stream == 0 {
		return c.widen(more)
	}
	s, wrong, err := c.widenStream(f.stream, more)
	switch {
	case err != nil:
		return err
	case wrong != NoError:
		return c.misled(s, wrong)
	}
	return c.floods.idle(idleFrame)
}

// widen gives the connection room.
func (c *conn) widen(more int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if more == 0 {
		return broken(ProtocolError, "WINDOW_UPDATE by nothing")
	}
	if c.sendWindow += more; c.sendWindow > maxWindow {
		return broken(FlowControlError, "the window of the connection")
	}
	return c.floods.idle(idleFrame)
}

// widenStream gives a stream room. wrong is what its client did wrong.
func (c *conn) widenStream(id uint32, more int64) (s *Stream, wrong Code, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s = c.streams[id]
	switch {
	case id > c.seen:
		return nil, 0, broken(ProtocolError, "WINDOW_UPDATE of a stream that was not opened")
	case s == nil: // it was closed while the frame was on its way
		return nil, NoError, nil
	case more == 0:
		return s, ProtocolError, nil
	}
	if s.sendWindow += more; s.sendWindow > maxWindow {
		return s, FlowControlError, nil
	}
	c.schedule(s)
	return s, NoError, nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
