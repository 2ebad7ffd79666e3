// Command mig asks NVIDIA's own libraries about MIG profiles.
//
// It reads questions, one JSON object per line, and answers each with one line: which profiles a GPU
// has and where its instances may start, by the GPUs that go-nvml plays, and which names go-nvlib
// reads as one of them. It needs no GPU and no driver, and is the judge of dovetail's tables. It is a
// module of its own: go-nvml is compiled with C, and the scheduler in the folder above keeps the
// versions that Kubernetes pins. Nothing here decides by itself.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// maxQuestionBytes bounds one line of input.
const maxQuestionBytes = 1 << 20

func main() {
	if err := answerAll(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mig:", err)
		os.Exit(1)
	}
}

// answerAll answers each line of input with a line of output. A question that cannot be answered gets
// an answer with `error` set; only broken input or output ends the run.
func answerAll(input io.Reader, output io.Writer) error {
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, maxQuestionBytes)
	encoder := json.NewEncoder(output)
	for number := 1; lines.Scan(); number++ {
		answer, err := answerLine(lines.Bytes())
		if err != nil {
			problem := fmt.Sprintf("line %d: %v", number, err)
			answer = &Answer{Error: problem, Profiles: []Profile{}, Names: []Name{}}
		}
		if err := encoder.Encode(answer); err != nil {
			return fmt.Errorf("writing the answer to line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading questions: %w", err)
	}
	return nil
}
