// The program renders templates of scheduler_perf. It reads requests and writes answers, one JSON object per line.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

type request struct {
	File   string         `json:"file"`
	Values map[string]any `json:"values"`
}

type answer struct {
	Text  string `json:"text"`
	Error string `json:"error"`
}

// toInt returns an operand as an integer. JSON numbers are the only operands that scheduler_perf has.
func toInt(value any) int {
	switch number := value.(type) {
	case int:
		return number
	case float64:
		return int(number)
	}
	panic(fmt.Sprintf("%v is no number", value))
}

func fold(combine func(int, int) int) func(...any) int {
	return func(operands ...any) int {
		result := toInt(operands[0])
		for _, operand := range operands[1:] {
			result = combine(result, toInt(operand))
		}
		return result
	}
}

var functions = template.FuncMap{
	"Int":         toInt,
	"AddInt":      fold(func(a, b int) int { return a + b }),
	"SubtractInt": fold(func(a, b int) int { return a - b }),
	"MultiplyInt": fold(func(a, b int) int { return a * b }),
	"DivideInt":   fold(func(a, b int) int { return a / b }),
	"Mod":         fold(func(a, b int) int { return a % b }),
	"JSON": func(value any) (string, error) {
		text, err := json.Marshal(value)
		return string(text), err
	},
}

// useIntegers replaces whole numbers by integers, which templates print without an exponent and compare with literals.
func useIntegers(values map[string]any) {
	for name, value := range values {
		if number, ok := value.(float64); ok && number == float64(int(number)) {
			values[name] = int(number)
		}
	}
}

func render(templates map[string]*template.Template, line []byte) (string, error) {
	var req request
	if err := json.Unmarshal(line, &req); err != nil {
		return "", err
	}
	parsed, ok := templates[req.File]
	if !ok {
		var err error
		name := filepath.Base(req.File)
		if parsed, err = template.New(name).Funcs(functions).ParseFiles(req.File); err != nil {
			return "", err
		}
		templates[req.File] = parsed
	}
	useIntegers(req.Values)
	var text bytes.Buffer
	err := parsed.Execute(&text, req.Values)
	return strings.TrimSpace(text.String()), err
}

func main() {
	templates := map[string]*template.Template{}
	input, output := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		text, err := render(templates, line)
		result := answer{Text: text}
		if err != nil {
			result.Error = err.Error()
		}
		if output.Encode(result) != nil {
			return
		}
	}
}
