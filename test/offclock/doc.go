// Package offclock starts a program whose clock is off, as on a machine without time synchronization. Linux on amd64 only.
//
// The time of day is what is off; the monotonic clock, by which programs measure, is that of the machine. A static program
// asks the kernel for neither: it reads both from the vDSO, which no library can be put before. So the package lets the
// program start without one: it takes it out of the auxiliary vector while the program makes its first call, arch_prctl(2).
// From then on each look at the time of day is a call, which a Clock answers (package interpose). A program that uses Start
// calls interpose.Main first thing in main.
package offclock
