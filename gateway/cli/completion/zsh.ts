/** Completion for zsh. */
import type { CommandModel, Value } from './command-model.ts';

export function zshCompletion(name: string, models: readonly CommandModel[]): string {
  const paths = models.filter((model) => model.path !== '').map((model) => model.path);
  return `#compdef ${name}
# zsh completion for ${name}; load with: source <(${name} completion zsh)
_${name}() {
  local at='' i
  local -a entries
  for ((i = 2; i < CURRENT; i++)); do
    # What follows -- is somebody else's command.
    [[ "\${words[i]}" == -- ]] && { _normal; return; }
    case "$at/\${words[i]}" in
      ${paths.join('|')}) at="$at/\${words[i]}" ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
${models.flatMap(optionValues).join('\n')}
  esac
  case "$at" in
${models.map(entriesOf).join('\n')}
  esac
}
if [[ "\${funcstack[1]}" == _${name} ]]; then _${name} "$@"; else compdef _${name} ${name}; fi
`;
}

function optionValues(model: CommandModel): string[] {
  return model.options.flatMap((option) => {
    if (option.value === null) return [];
    const patterns = option.names.map((text) => quote(`${model.path} ${text}`)).join('|');
    return [`    ${patterns}) ${complete(option.value)}; return ;;`];
  });
}

function complete(value: Value): string {
  if (value.kind === 'file') return '_files';
  if (value.kind === 'free') return ':';
  return `compadd -- ${value.words.map(quote).join(' ')}`;
}

function entriesOf(model: CommandModel): string {
  const entries = [
    ...model.subcommands.map((word) => entry(word.text, word.description)),
    ...model.options.flatMap((option) => option.names.map((text) => entry(text, option.description))),
  ];
  const argument = model.argument === null ? '' : `; ${complete(model.argument)}`;
  return `    ${quote(model.path)}) entries=(${entries.join(' ')}); _describe '${'command or option'}' entries${argument} ;;`;
}

/** A colon parts the word from its description, so one inside the word is escaped. */
function entry(text: string, description: string): string {
  return quote(`${text.replaceAll(':', '\\:')}:${description}`);
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
