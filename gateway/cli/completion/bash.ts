/** Completion for bash 4 and later. */
import type { CommandModel, Value } from './command-model.ts';

export function bashCompletion(name: string, models: readonly CommandModel[]): string {
  const paths = models.filter((model) => model.path !== '').map((model) => model.path);
  return `# bash completion for ${name}; load with: source <(${name} completion bash)
_${name}() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" path='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    # What follows -- is somebody else's command.
    [[ "\${COMP_WORDS[i]}" == -- ]] && { COMPREPLY=($(compgen -f -- "$cur")); return; }
    case "$path/\${COMP_WORDS[i]}" in
      ${paths.join('|')}) path="$path/\${COMP_WORDS[i]}" ;;
    esac
  done
  case "$path $prev" in
${models.flatMap(optionValues).join('\n')}
  esac
  case "$path" in
${models.map(words).join('\n')}
  esac
}
complete -F _${name} ${name}
`;
}

function optionValues(model: CommandModel): string[] {
  return model.options.flatMap((option) => {
    if (option.value === null) return [];
    const patterns = option.names.map((text) => quote(`${model.path} ${text}`)).join('|');
    return [`    ${patterns}) ${replyWith(option.value)}; return ;;`];
  });
}

function words(model: CommandModel): string {
  const texts = [...model.subcommands.map((word) => word.text), ...model.options.flatMap((option) => option.names)];
  const choices = model.argument?.kind === 'words' ? model.argument.words : [];
  const reply = replyWith({ kind: 'words', words: [...choices, ...texts] });
  const files = model.argument?.kind === 'file' ? '; [[ "$cur" == -* ]] || COMPREPLY+=($(compgen -f -- "$cur"))' : '';
  return `    ${quote(model.path)}) ${reply}${files} ;;`;
}

function replyWith(value: Value): string {
  if (value.kind === 'file') return 'COMPREPLY=($(compgen -f -- "$cur"))';
  if (value.kind === 'free') return 'COMPREPLY=()';
  return `COMPREPLY=($(compgen -W ${quote(value.words.join(' '))} -- "$cur"))`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
